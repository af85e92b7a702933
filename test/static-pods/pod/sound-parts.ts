/**
 * Sound pods that together have each part of a pod which kubelet's validation looks at: test/static-pods/pod/mistakes.ts breaks one thing in
 * one of them at a time. Parts that refer to objects of the API are missing: kubelet refuses every static pod that has one.
 */

type Part = Readonly<Record<string, unknown>>

const labelSelector = {
  matchLabels: { app: 'web' },
  matchExpressions: [
    { key: 'tier', operator: 'In', values: ['a', 'b'] },
    { key: 'hash', operator: 'Exists' },
  ],
}
const podTerm = {
  topologyKey: 'kubernetes.io/hostname',
  labelSelector,
  namespaceSelector: labelSelector,
  namespaces: ['default'],
  matchLabelKeys: ['hash'],
  mismatchLabelKeys: ['other'],
}
const nodeTerm = {
  matchExpressions: [
    { key: 'disk', operator: 'In', values: ['ssd', 'nvme'] },
    { key: 'cpus', operator: 'Gt', values: ['4'] },
    { key: 'gpu', operator: 'DoesNotExist' },
  ],
  matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node'] }],
}
const podAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution: [podTerm],
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: podTerm }],
}
const profile = { type: 'Localhost', localhostProfile: 'profiles/a.json' }
const resources = {
  limits: { cpu: '1500m', memory: '1Gi', 'hugepages-2Mi': '64Mi', 'nvidia.com/gpu': '2', 'ephemeral-storage': '1Gi' },
  requests: { cpu: '500m', memory: '512Mi', 'hugepages-2Mi': '64Mi', 'nvidia.com/gpu': '2' },
}

/** Fields of the pod beside its name and its containers. */
interface Sound {
  readonly metadata?: Part
  readonly spec?: Part
  readonly container?: Part
}

const parts: Readonly<Record<string, Sound>> = {
  metadata: {
    metadata: {
      namespace: 'kube-system',
      labels: { app: 'web', 'a.b/c': 'D_e.f', 'kubernetes.io/os': 'linux' },
      annotations: {
        'a.b/c': 'anything at all',
        'controller.kubernetes.io/pod-deletion-cost': '5',
        'container.apparmor.security.beta.kubernetes.io/web': 'runtime/default',
        'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default',
        'scheduler.alpha.kubernetes.io/tolerations': '[{"key":"CriticalAddonsOnly","operator":"Exists"}]',
      },
      generateName: 'web-',
      generation: 1,
      finalizers: ['a.b/c', 'orphan'],
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'node', uid: 'u', controller: true }],
      managedFields: [{ manager: 'm', operation: 'Apply', fieldsType: 'FieldsV1', subresource: 'status' }],
    },
  },
  affinity: {
    spec: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeTerm] },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, preference: nodeTerm }],
        },
        podAffinity,
        podAntiAffinity: podAffinity,
      },
    },
  },
  scheduling: {
    spec: {
      nodeSelector: { disk: 'ssd' },
      nodeName: 'node',
      schedulerName: 'mine',
      priorityClassName: 'system-node-critical',
      priority: 2000001000,
      preemptionPolicy: 'Never',
      runtimeClassName: 'kata',
      overhead: { cpu: '10m', 'hugepages-2Mi': '8Mi' },
      schedulingGroup: { podGroupName: 'group' },
      tolerations: [
        { key: 'a/b', operator: 'Equal', value: 'c', effect: 'NoExecute', tolerationSeconds: 5 },
        { operator: 'Exists' },
        { key: 'x', operator: 'Exists', effect: 'NoSchedule' },
      ],
      readinessGates: [{ conditionType: 'a.b/c' }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'DoNotSchedule',
          minDomains: 2,
          nodeAffinityPolicy: 'Honor',
          nodeTaintsPolicy: 'Ignore',
          labelSelector,
          matchLabelKeys: ['hash'],
        },
        { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
    },
  },
  names: {
    spec: {
      hostname: 'web',
      subdomain: 'sub',
      setHostnameAsFQDN: true,
      activeDeadlineSeconds: 600,
      terminationGracePeriodSeconds: 30,
      hostAliases: [{ ip: '10.0.0.1', hostnames: ['a.b', 'c'] }],
      dnsPolicy: 'None',
      dnsConfig: {
        nameservers: ['10.0.0.10', '::1'],
        searches: ['a.b', '_x.y', '.'],
        options: [{ name: 'ndots', value: '2' }],
      },
      os: { name: 'linux' },
      restartPolicy: 'Always',
      shareProcessNamespace: true,
    },
  },
  'a name of its own': { spec: { hostnameOverride: 'web.example', setHostnameAsFQDN: false } },
  'security of the pod': {
    metadata: {
      annotations: {
        'seccomp.security.alpha.kubernetes.io/pod': 'localhost/profiles/a.json',
        'container.seccomp.security.alpha.kubernetes.io/web': 'docker/default',
      },
    },
    container: { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
    spec: {
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 1000,
        fsGroup: 1000,
        supplementalGroups: [1000, 2000],
        runAsNonRoot: true,
        fsGroupChangePolicy: 'OnRootMismatch',
        supplementalGroupsPolicy: 'Merge',
        seLinuxChangePolicy: 'Recursive',
        seLinuxOptions: { type: 'a', level: 's0' },
        seccompProfile: profile,
        appArmorProfile: { type: 'RuntimeDefault' },
        sysctls: [
          { name: 'net.ipv4.ip_local_port_range', value: '1024 65535' },
          { name: 'kernel.shm_rmid_forced', value: '1' },
          { name: 'fs/mqueue/msg_max', value: '5' },
        ],
      },
    },
  },
  'security of a container': {
    metadata: {
      annotations: {
        'container.apparmor.security.beta.kubernetes.io/web': 'localhost/a',
        'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
      },
    },
    spec: { hostUsers: false, securityContext: { seccompProfile: { type: 'Unconfined' } } },
    container: {
      securityContext: {
        runAsUser: 1000,
        runAsGroup: 1000,
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
        procMount: 'Unmasked',
        seccompProfile: { type: 'RuntimeDefault' },
        appArmorProfile: { type: 'Localhost', localhostProfile: 'a' },
        seLinuxOptions: { type: 'a' },
      },
    },
  },
  'the network of the host': {
    metadata: { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': 'unconfined' } },
    spec: {
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      dnsPolicy: 'ClusterFirstWithHostNet',
      securityContext: { sysctls: [{ name: 'kernel.domainname', value: 'x' }] },
      volumes: [{ name: 'data', hostPath: { path: '/srv', type: 'Directory' } }],
    },
    container: {
      ports: [
        { containerPort: 80, hostPort: 80, name: 'http', protocol: 'TCP' },
        { containerPort: 80, protocol: 'UDP', hostIP: '127.0.0.1' },
      ],
      volumeMounts: [{ name: 'data', mountPath: '/srv', mountPropagation: 'Bidirectional' }],
      securityContext: {
        privileged: true,
        allowPrivilegeEscalation: true,
        capabilities: { add: ['CAP_SYS_ADMIN'] },
        appArmorProfile: { type: 'Unconfined' },
      },
    },
  },
  resources: {
    spec: {
      resources: { limits: { cpu: 4, memory: '4Gi', 'hugepages-2Mi': '64Mi' }, requests: { cpu: '2', memory: '2Gi' } },
      restartPolicy: 'Never',
    },
    container: {
      resources,
      resizePolicy: [
        { resourceName: 'cpu', restartPolicy: 'NotRequired' },
        { resourceName: 'memory', restartPolicy: 'NotRequired' },
      ],
    },
  },
  'resizing and restarts': {
    spec: {
      restartPolicy: 'OnFailure',
      initContainers: [
        {
          name: 'first',
          image: 'x',
          resources: { limits: { cpu: '1' } },
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
          restartPolicy: 'OnFailure',
          restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'NotIn', values: [0] } }],
        },
      ],
    },
    container: {
      resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
      restartPolicy: 'Never',
      restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1, 42] } }],
    },
  },
  probes: {
    spec: {
      terminationGracePeriodSeconds: 30,
      os: { name: 'linux' },
      initContainers: [
        {
          name: 'side',
          image: 'x',
          restartPolicy: 'Always',
          ports: [{ containerPort: 90, hostPort: 90 }],
          startupProbe: { exec: { command: ['true'] } },
          lifecycle: { preStop: { sleep: { seconds: 1 } } },
        },
        { name: 'first', image: 'x', command: ['true'] },
      ],
    },
    container: {
      livenessProbe: {
        httpGet: { port: 80, path: '/live', host: 'h', scheme: 'HTTPS', httpHeaders: [{ name: 'X-Y', value: 'z' }] },
        initialDelaySeconds: 1,
        timeoutSeconds: 1,
        periodSeconds: 1,
        successThreshold: 1,
        failureThreshold: 1,
        terminationGracePeriodSeconds: 5,
      },
      readinessProbe: { grpc: { port: 80, service: 's' }, successThreshold: 3 },
      startupProbe: { tcpSocket: { port: 'http', host: 'h' } },
      lifecycle: {
        postStart: { httpGet: { port: 'http', protocol: 'HTTP2' } },
        preStop: { sleep: { seconds: 5 } },
        stopSignal: 'SIGUSR1',
      },
      ports: [{ containerPort: 80, name: 'http' }],
    },
  },
  variables: {
    spec: {
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'other', hostPath: { path: '/srv' } },
      ],
    },
    container: {
      env: [
        { name: 'A', value: 'b' },
        { name: 'B', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['a.b/c']" } } },
        { name: 'C', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
        { name: 'D', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m', containerName: 'web' } } },
        { name: 'E', valueFrom: { resourceFieldRef: { resource: 'requests.hugepages-2Mi', divisor: '1Mi' } } },
        { name: 'S', valueFrom: { resourceFieldRef: { resource: 'limits.ephemeral-storage', divisor: '1Gi' } } },
        { name: 'F', valueFrom: { fileKeyRef: { volumeName: 'scratch', path: 'a/b', key: 'K', optional: true } } },
      ],
      command: ['sh'],
      args: ['-c'],
      workingDir: '/',
      terminationMessagePolicy: 'FallbackToLogsOnError',
      terminationMessagePath: '/x',
      imagePullPolicy: 'Never',
    },
  },
  volumes: {
    spec: {
      volumes: [
        { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } },
        { name: 'host', hostPath: { path: '/srv', type: 'DirectoryOrCreate' } },
        { name: 'image', image: { reference: 'x:1', pullPolicy: 'IfNotPresent' } },
        {
          name: 'info',
          downwardAPI: {
            defaultMode: 420,
            items: [
              { path: 'a/b', mode: 256, fieldRef: { fieldPath: 'metadata.labels' } },
              { path: 'c', resourceFieldRef: { containerName: 'web', resource: 'limits.memory', divisor: '1Mi' } },
            ],
          },
        },
        {
          name: 'both',
          projected: {
            defaultMode: 420,
            sources: [
              { downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'metadata.name' } }] } },
              { downwardAPI: { items: [{ path: 'b', fieldRef: { fieldPath: 'metadata.uid' } }] } },
            ],
          },
        },
      ],
    },
    container: {
      volumeMounts: [
        { name: 'scratch', mountPath: '/a', subPath: 'x/y', bindMountOptions: ['noexec'] },
        { name: 'scratch', mountPath: '/b', subPathExpr: '$(A)/x' },
        {
          name: 'host',
          mountPath: '/c',
          readOnly: true,
          recursiveReadOnly: 'Enabled',
          mountPropagation: 'None',
        },
        { name: 'image', mountPath: '/d', mountPropagation: 'HostToContainer' },
      ],
    },
  },
  'volumes of vendors': {
    spec: {
      volumes: [
        { nfs: { server: 's', path: '/x', readOnly: true } },
        {
          iscsi: {
            targetPortal: '10.0.0.1:3260',
            iqn: 'iqn.2001-04.com.example:a',
            lun: 1,
            initiatorName: 'iqn.2001-04.com.example:b',
          },
        },
        { fc: { targetWWNs: ['500a0982991b8dc5'], lun: 2 } },
        { fc: { wwids: ['3600508b400105e210000900000490000'] } },
        { gitRepo: { repository: 'https://x', directory: 'a/b' } },
        { gcePersistentDisk: { pdName: 'd', partition: 1 } },
        { awsElasticBlockStore: { volumeID: 'v', partition: 1 } },
        { flocker: { datasetName: 'd' } },
        { quobyte: { registry: 'a:1,b:2', volume: 'v', tenant: 't' } },
        { vsphereVolume: { volumePath: 'v' } },
        { photonPersistentDisk: { pdID: 'p' } },
        { portworxVolume: { volumeID: 'v' } },
        { azureDisk: { diskName: 'd', diskURI: '/subscriptions/x', kind: 'Managed', cachingMode: 'None' } },
        { cephfs: { monitors: ['m'], path: '/x' } },
        { cinder: { volumeID: 'v' } },
        { rbd: { monitors: ['m'], image: 'i' } },
        { scaleIO: { gateway: 'g', system: 's', volumeName: 'v' } },
        { storageos: { volumeName: 'v', volumeNamespace: 'n' } },
        { flexVolume: { driver: 'd', options: { 'a.b/c': 'd' } } },
      ].map((source, index) => ({ name: `v${index}`, ...source })),
    },
  },
  'options for Windows': {
    spec: {
      hostNetwork: true,
      securityContext: {
        windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM', gmsaCredentialSpecName: 'a' },
      },
    },
    container: {
      securityContext: {
        windowsOptions: { hostProcess: true, runAsUserName: 'DOMAIN\\user', gmsaCredentialSpec: 'x' },
        runAsNonRoot: true,
      },
    },
  },
  little: {
    container: {
      ports: [{ containerPort: 80, hostPort: 8080, hostIP: '10.0.0.1' }],
      resources: { limits: { cpu: '1', 'hugepages-2Mi': '2Mi' } },
    },
  },
}

export const sound: readonly { readonly what: string; readonly pod: Part }[] = Object.entries(parts).map(
  ([what, { metadata, spec, container }]) => ({
    what,
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', ...metadata },
      spec: { containers: [{ name: 'web', image: 'web:1', ...container }], ...spec },
    },
  }),
)
