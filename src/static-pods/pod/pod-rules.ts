/*
 * What kubelet's validation demands of a static pod, by type and field (Kubernetes 1.35 to 1.37: pkg/kubelet/config/common.go,
 * tryDecodeSinglePod; pkg/apis/core/validation, ValidatePodCreate; pkg/api/pod, HasAPIObjectReference). kubelet's own code judges this
 * table, and pods with one mistake each show what is missing in it (test/e2e/kubelet-mistakes.test.ts).
 *
 * A row: fields | check | what is wrong where it fails | kubelets. `NAME[]` is each item of a list, `NAME{}` each value of a map, `NAME{key}`
 * each name in it, `.` the map itself. Checks are in rule.ts and pod-checks.ts; some have words of their own. `from 37`: kubelets of 1.37
 * and later have the rule; `until 37`: those before. `never`: kubelet takes the pod, and never runs it.
 */
import { readRules, type Rule } from './rule.js'

const table = `
ObjectMeta
  name | pod name | is not a valid name for a pod: a DNS subdomain of at most 253 characters, with a dash and the node's name behind
  generateName | beginning of a name | is not a valid beginning of a name
  namespace | optional label
  generation | within 0
  labels{key} | name of a label
  labels{} | optional label value
  labels | of this system | are of another system than this node (kubernetes.io/os) | never
  annotations{key} | name of an annotation
  annotations{} | annotation | is not a valid value of this annotation
  annotations | short annotations | are more than 256 KiB together
  annotations{key} | no copy | is of the copy of a static pod in the API: remove it | never
  finalizers[] | finalizer | is not a valid name for a finalizer
  finalizers | one way to end | must not be both of orphan and foregroundDeletion
  deletionTimestamp | absent | ends the pod: the API server alone may set it | never
OwnerReference
  apiVersion kind name uid | needed
  apiVersion | optional group and version
  apiVersion | optional version | is not a valid version of an API | from 37
  . | no event | must not be an event
  controller | first controller | must be true of one owner only
ManagedFieldsEntry
  operation | needed words Apply Update
  fieldsType | words FieldsV1
  manager | optional manager | must be printable, and at most 128 characters
  subresource | optional subresource | must be at most 256 characters

PodSpec
  restartPolicy | words Always OnFailure Never
  dnsPolicy | words ClusterFirst ClusterFirstWithHostNet Default None
  preemptionPolicy | given words PreemptLowerPriority Never
  activeDeadlineSeconds | within 1 2147483647
  hostname subdomain | optional label
  priorityClassName | optional subdomain
  runtimeClassName | given subdomain
  nodeSelector{key} | name of a label
  nodeSelector{} | optional label value
  hostnameOverride | given host name | must be a DNS subdomain of at most 64 characters
  hostnameOverride | free host name | must not be beside hostNetwork or setHostnameAsFQDN
  shareProcessNamespace | own processes | must not be true beside hostPID
  hostUsers | own users | must not be false beside hostNetwork, hostPID or hostIPC
  securityContext | host processes | must have the same hostProcess as all containers, which needs hostNetwork
  schedulingGates | empty | is for pods that wait for a node
  ephemeralContainers | empty | can only be added to a running pod
  dnsConfig | name servers | must have nameservers, with dnsPolicy: None
  schedulingGroup | no responders | must not be beside evictionResponders | from 37
  serviceAccountName serviceAccount | named refers ServiceAccounts
  imagePullSecrets[] | named refers Secrets
  resourceClaims | any refers ResourceClaims
  resources | limits of containers | must not have a limit that is less than that of a container
  overhead{key} | resource
  overhead{} | amount
  overhead{} | pages
  overhead | beside huge pages
PodOS
  name | needed words linux windows
  name | not windows | is not that of this node | never
PodSchedulingGroup
  podGroupName | needed subdomain | | from 36
WorkloadReference
  name | needed subdomain | | until 36
  podGroup | needed label | | until 36
  podGroupReplicaKey | optional label | | until 36
PodReadinessGate
  conditionType | needed label name
HostAlias
  ip | needed address
  ip | optional strict address | | from 36
  hostnames[] | needed subdomain
PodDNSConfig
  nameservers | at most 3
  nameservers[] | needed address
  nameservers[] | optional strict address | | from 36
  searches | short searches | must be at most 32, of 2048 characters together
  searches[] | needed search | is not a valid name for a domain
PodDNSConfigOption
  name | needed
Toleration
  key | optional label name
  operator | words Exists Equal
  operator | operator of a key | must be Exists without a key
  effect | words NoSchedule PreferNoSchedule NoExecute
  effect | effect for a time | must be NoExecute beside tolerationSeconds
  value | tolerated value | must be empty with Exists, and else a label value
TopologySpreadConstraint
  maxSkew | positive
  topologyKey | needed
  whenUnsatisfiable | needed words DoNotSchedule ScheduleAnyway
  . | other spread | is the same as another, by topologyKey and whenUnsatisfiable
  minDomains | within 1
  minDomains | strict spread | needs whenUnsatisfiable: DoNotSchedule
  nodeAffinityPolicy nodeTaintsPolicy | given words Honor Ignore
  matchLabelKeys | selector | must not be there without a labelSelector
  matchLabelKeys[] | needed label name
  matchLabelKeys | other keys | must not be in the labelSelector, too
NodeSelector
  nodeSelectorTerms | some
NodeSelectorRequirement
  operator | needed words In NotIn Exists DoesNotExist Gt Lt
  operator | operator of a field | must be In or NotIn in matchFields
  values | values | must be some with In and NotIn, one with Gt and Lt, and none with Exists and DoesNotExist
  values | value of a field | must be one in matchFields
  values[] | value of a node | is not a valid value of a label, or of metadata.name
  key | key of a node | is not a valid name for a label, or with matchFields metadata.name
PreferredSchedulingTerm
  weight | weight | must be 1 to 100
WeightedPodAffinityTerm
  weight | weight | must be 1 to 100
  podAffinityTerm | there
PodAffinityTerm
  topologyKey | needed label name
  namespaces[] | needed label
  matchLabelKeys mismatchLabelKeys | selector | must not be there without a labelSelector
  matchLabelKeys[] mismatchLabelKeys[] | needed label name
  matchLabelKeys | other keys | must not be in the labelSelector, too
  matchLabelKeys | no mismatch | must not be in mismatchLabelKeys, too
LabelSelector
  matchLabels{key} | name of a label
  matchLabels{} | optional label value
LabelSelectorRequirement
  key | needed label name
  operator | needed words In NotIn Exists DoesNotExist
  values | values | must be some with In and NotIn, and none with Exists and DoesNotExist
  values[] | optional label value

PodSecurityContext
  runAsUser runAsGroup fsGroup supplementalGroups[] | within 0 2147483647
  fsGroupChangePolicy | given words OnRootMismatch Always
  supplementalGroupsPolicy | given words Merge Strict
  seLinuxChangePolicy | given words Recursive MountOption
  seLinuxChangePolicy | not MountOption | must be Recursive | until 37
  seccompProfile | annotated seccomp | must be the same as in the annotation
  windowsOptions | no Linux | must not be there with os.name: linux
SecurityContext
  runAsUser runAsGroup | within 0 2147483647
  procMount | given words Default Unmasked
  procMount | masked | must not be Unmasked without hostUsers: false
  allowPrivilegeEscalation | escalation | must not be false beside privileged: true or CAP_SYS_ADMIN
  seccompProfile | annotated seccomp | must be the same as in the annotation
  windowsOptions | no Linux | must not be there with os.name: linux
Sysctl
  name | needed sysctl | is not a valid name for a kernel parameter
  name | unique | is also the name of another
  name | own sysctl | is the host's, with hostNetwork or hostIPC
SeccompProfile
  type | needed words RuntimeDefault Localhost Unconfined
  localhostProfile | local profile | must be there with type: Localhost, and with no other
  localhostProfile | given local path
AppArmorProfile
  type | needed words RuntimeDefault Localhost Unconfined
  localhostProfile | local profile | must be there with type: Localhost, and with no other
  localhostProfile | given profile | must be 1 to 4095 characters, without spaces around them
WindowsSecurityContextOptions
  gmsaCredentialSpecName | given subdomain
  gmsaCredentialSpec | given credential | must be 1 to 65536 characters
  runAsUserName | given Windows user | is not a valid name for a user

Container
  name | needed label
  name | own name | is also the name of another container
  image | needed trimmed | is missing, or has spaces around it
  imagePullPolicy | words Always IfNotPresent Never
  terminationMessagePolicy | words File FallbackToLogsOnError
  restartPolicy | given words Always OnFailure Never
  restartPolicyRules | restart policy | needs a restartPolicy
  restartPolicyRules | at most 20
  restartPolicyRules | no sidecar | must not be there with restartPolicy: Always in an init container | until 36
  lifecycle livenessProbe readinessProbe startupProbe | lasting | needs restartPolicy: Always in an init container
  livenessProbe startupProbe | one success | must have no successThreshold but 1
  readinessProbe | no grace | must have no terminationGracePeriodSeconds
  volumeDevices | any refers PersistentVolumeClaims
  . | annotated AppArmor | must have the AppArmor profile of its annotation
ContainerRestartRule
  action | needed words Restart RestartAllContainers
  action | not RestartAllContainers | must be Restart | until 36
  exitCodes | there
ContainerRestartRuleOnExitCodes
  operator | needed words In NotIn
  values | at most 255
ContainerResizePolicy
  resourceName | needed words cpu memory
  resourceName | unique
  restartPolicy | needed words NotRequired RestartContainer
  restartPolicy | resized pod | must be NotRequired in a pod with restartPolicy: Never
  restartPolicy | resized container | must be NotRequired in an init container without restartPolicy: Always | from 36
ContainerPort
  name | optional port name
  name | unique | is also the name of another port
  containerPort | port number
  hostPort | host port | must be a port, 1 to 65535
  hostPort | same port | must be the containerPort, with hostNetwork
  hostPort | free port | is also the hostPort of another port
  protocol | words TCP UDP SCTP
EnvVar
  name | needed printed
  valueFrom | no value | must not be beside a value
EnvVarSource
  . | one of fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
  configMapKeyRef | named refers ConfigMaps
  secretKeyRef | named refers Secrets
ConfigMapKeySelector
  name | needed subdomain
  key | needed data key
SecretKeySelector
  name | needed subdomain
  key | needed data key
EnvFromSource
  . | one of configMapRef secretRef
  configMapRef | refers ConfigMaps
  secretRef | refers Secrets
ObjectFieldSelector
  apiVersion | v1 | must be v1
  fieldPath | field of a pod | is no field that a variable or a file may stand for
ResourceFieldSelector
  resource | needed field of resources | must be limits.cpu, requests.memory, or such
  containerName | named container | is missing
  divisor | divisor | must be 1 or 1m of cpu, and else 1, or 1 with a unit
FileKeySelector
  key | needed printed
  path | needed path without climb | is missing, or contains ".."
  volumeName | name of an emptyDir | is not the name of an emptyDir in spec.volumes
VolumeMount
  name | name of a volume | is not the name of a volume in spec.volumes
  mountPath | needed
  mountPath | unique | is also the path of another mount
  subPath subPathExpr | optional local path
  subPathExpr | no subPath | must not be beside a subPath
  mountPropagation | given words None HostToContainer Bidirectional
  mountPropagation | propagation | must not be Bidirectional without privileged: true
  recursiveReadOnly | given words Disabled IfPossible Enabled
  recursiveReadOnly | read only | needs readOnly: true, and no mountPropagation
  bindMountOptions[] | needed words noexec nodev nosuid | | from 37
  bindMountOptions | different | must not be the same twice | from 37
  bindMountOptions | no image | must not be there of an image | from 37
Probe
  initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold | within 0
  terminationGracePeriodSeconds | within 1
  . | one of exec httpGet tcpSocket grpc
Lifecycle
  stopSignal | system | needs os.name
  stopSignal | signal | is not a signal of Linux
LifecycleHandler
  . | one of exec httpGet tcpSocket sleep
ExecAction
  command | some
HTTPGetAction
  port | port
  scheme | words HTTP HTTPS
  protocol | given words HTTP1 HTTP2 | | from 37
  protocol | clear protocol | must not be HTTP2 beside HTTPS or a host | from 37
HTTPHeader
  name | needed header | is not a valid name for a header
TCPSocketAction
  port | port
GRPCAction
  port | port number
  mode | given words Plaintext TLS | | from 37
SleepAction
  seconds | within grace | must be 0 to terminationGracePeriodSeconds
ResourceRequirements
  limits{key} requests{key} | resource
  limits{} requests{} | amount
  limits{} requests{} | pages
  requests{} | limited | must not be more than its limit
  requests{} | reserved | must have a limit that is the same
  . | beside huge pages
  claims | no claims | needs ResourceClaims, which a static pod may not have
  requests{} | enough requests | must not be less than what the containers request together
  limits{} | enough limits | must not be less than the limits of the containers together
  limits{} | enough by default | must not be less than what the containers request together | until 37

Volume
  name | needed label
  name | unique | is also the name of another volume
  . | one source | must have one source
  configMap | refers ConfigMaps
  secret azureFile | refers Secrets
  csi | refers CSI drivers
  glusterfs | refers Endpoints
  persistentVolumeClaim ephemeral | refers PersistentVolumeClaims
EmptyDirVolumeSource
  sizeLimit | size | must not be less than 0
  mode | within 0 1023 | must be 0 to 01777 | from 37
HostPathVolumeSource
  path | needed
  path | optional path without climb
  type | words DirectoryOrCreate Directory FileOrCreate File Socket CharDevice BlockDevice
ImageVolumeSource
  reference | needed | | from 37
  pullPolicy | words Always IfNotPresent Never
DownwardAPIVolumeSource
  defaultMode | within 0 511 | must be 0 to 0777
  defaultUser | within 0 2147483647 | | from 37
DownwardAPIVolumeFile
  path | needed local file
  . | one of fieldRef resourceFieldRef
  mode | within 0 511 | must be 0 to 0777
  user | within 0 2147483647 | | from 37
ProjectedVolumeSource
  defaultMode | within 0 511 | must be 0 to 0777
  defaultUser | within 0 2147483647 | | from 37
  sources | different paths | must not have one path twice
VolumeProjection
  configMap | refers ConfigMaps
  secret | refers Secrets
  serviceAccountToken | refers ServiceAccounts
  clusterTrustBundle | refers ClusterTrustBundles
  podCertificate | refers PodCertificateRequests
  downwardAPI | there | is missing: a static pod may have no other source
NFSVolumeSource
  server | needed
  path | needed absolute path
ISCSIVolumeSource
  targetPortal | needed
  iqn | needed initiator
  initiatorName | given initiator
  initiatorName | short with volume | must not be there where the name of the volume and targetPortal have more than 63 characters
  lun | within 0 255
  secretRef | secret for CHAP | is missing
  secretRef | named refers Secrets
FCVolumeSource
  . | one list | must have one of targetWWNs, wwids
  lun | unit of names | must be 0 to 255
GitRepoVolumeSource
  repository | needed
  directory | optional local path
GCEPersistentDiskVolumeSource
  pdName | needed
  partition | within 0 255
AWSElasticBlockStoreVolumeSource
  volumeID | needed
  partition | within 0 255
FlockerVolumeSource
  . | one dataset | must have one of datasetName, datasetUUID
  datasetName | optional path of one name | must not contain a slash
QuobyteVolumeSource
  registry volume | needed
  registry | optional pairs | must be pairs of a host and a port
  tenant | optional tenant | must be at most 64 characters
VsphereVirtualDiskVolumeSource
  volumePath | needed
PhotonPersistentDiskVolumeSource
  pdID | needed
PortworxVolumeSource
  volumeID | needed
AzureDiskVolumeSource
  diskName diskURI | needed
  cachingMode | given words None ReadOnly ReadWrite
  kind | given words Shared Dedicated Managed
  diskURI | disk of the kind | does not fit to the kind
CephFSVolumeSource
  monitors | some
  secretRef | named refers Secrets
CinderVolumeSource
  volumeID | needed
  secretRef | refers Secrets
RBDVolumeSource
  monitors | some
  image | needed
  secretRef | named refers Secrets
ScaleIOVolumeSource
  gateway system volumeName | needed
  secretRef | named refers Secrets
StorageOSVolumeSource
  volumeName | needed label
  volumeNamespace | optional label
  secretRef | refers Secrets
FlexVolumeSource
  driver | needed
  options{key} | own domain | is of a reserved domain
  secretRef | named refers Secrets
`

/** By the type. */
export const podRules: ReadonlyMap<string, readonly Rule[]> = readRules(table)
