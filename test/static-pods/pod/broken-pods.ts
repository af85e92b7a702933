/** Pods that kubelet refuses, with the field that the error names, and some that it takes although they look odd. */
interface BrokenPod {
  readonly what: string
  readonly pod: object
  readonly field: RegExp
}

function pod(metadata: object, spec: object = {}, container: object = {}): object {
  const containers = [{ name: 'web', image: 'web:1', ...container }]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...metadata },
    spec: { containers, ...spec },
  }
}

function inMetadata(what: string, metadata: object, field: RegExp): BrokenPod {
  return { what, pod: pod(metadata), field }
}

function inSpec(what: string, spec: object, field: RegExp): BrokenPod {
  return { what, pod: pod({}, spec), field }
}

function inContainer(what: string, container: object, field: RegExp, spec: object = {}): BrokenPod {
  return { what, pod: pod({}, spec, container), field }
}

const volumes = [{ name: 'data', hostPath: { path: '/srv' } }]

export const brokenPods: readonly BrokenPod[] = [
  ...['a/b', '..', '.', 'Web', 'a b', 'a_b', 'x'.repeat(254)].map((name) =>
    inMetadata(`the name ${name.slice(0, 9)}`, { name }, /metadata\.name is not a valid name/),
  ),
  inMetadata('a namespace with a dot', { namespace: 'a.b' }, /metadata\.namespace/),
  inMetadata('labels as a list', { labels: ['a'] }, /metadata\.labels must be a map/),
  inMetadata('a label that is a map', { labels: { a: {} } }, /metadata\.labels\.a must be text, but is a map/),
  inMetadata('a label with a space', { labels: { a: 'b c' } }, /metadata\.labels\.a is not a valid label value/),
  inSpec('a flag in words', { hostNetwork: 'please' }, /spec\.hostNetwork must be true or/),
  inSpec('half a second', { terminationGracePeriodSeconds: 0.5 }, /terminationGracePeriodSeconds/),
  inSpec('volumes as a map', { volumes: { data: {} } }, /spec\.volumes must be a list/),
  inSpec('a restart policy in small letters', { restartPolicy: 'always' }, /spec\.restartPolicy/),
  inSpec('a DNS policy in small letters', { dnsPolicy: 'clusterFirst' }, /spec\.dnsPolicy must be one of/),
  inSpec(
    'two containers of one name',
    { containers: ['a', 'a'].map((name) => ({ name, image: 'b' })) },
    /spec\.containers\[1\]\.name is also the name of another/,
  ),
  inSpec(
    'a container with the name of an init container',
    { initContainers: [{ name: 'web', image: 'b' }] },
    /spec\.initContainers\[0\]\.name is also the name of another/,
  ),
  inContainer('a container name with a dot', { name: 'a.b' }, /containers\[0\]\.name is not a valid name/),
  inContainer('an image with a space before it', { image: ' web:1' }, /containers\[0\]\.image/),
  inContainer('a command in one text', { command: 'sh -c x' }, /command must be a list/),
  inContainer('ports as a number', { ports: 80 }, /ports must be a list/),
  inContainer('port 0', { ports: [{ containerPort: 0 }] }, /ports\[0\]\.containerPort/),
  inContainer('env as a map', { env: { A: 'b' } }, /env must be a list/),
  inContainer('env without a name', { env: [{ value: 'b' }] }, /env\[0\]\.name is missing/),
  inContainer('a pull policy in small letters', { imagePullPolicy: 'ifnotpresent' }, /imagePullPolicy/),
  inContainer(
    'a mount of no volume',
    { volumeMounts: [{ name: 'date', mountPath: '/srv' }] },
    /volumeMounts\[0\]\.name is not the name of a volume/,
    { volumes },
  ),
  inContainer(
    'a mount without a place',
    { volumeMounts: [{ name: 'data' }] },
    /volumeMounts\[0\]\.mountPath is missing/,
    { volumes },
  ),
  inContainer(
    'two mounts in one place',
    { volumeMounts: ['data', 'data'].map((name) => ({ name, mountPath: '/srv' })) },
    /volumeMounts\[1\]\.mountPath is also the path of another/,
    { volumes },
  ),
  inSpec(
    'two volumes of one name',
    { volumes: [...volumes, ...volumes] },
    /spec\.volumes\[1\]\.name is also the name of another/,
  ),
  inSpec(
    'a volume without a name',
    { volumes: [{ hostPath: { path: '/srv' } }] },
    /spec\.volumes\[0\]\.name is not a valid name/,
  ),
  inSpec('a host path without a path', { volumes: [{ name: 'data', hostPath: {} }] }, /hostPath\.path is missing/),
  inSpec(
    'a host path that climbs',
    { volumes: [{ name: 'data', hostPath: { path: '/srv/../etc' } }] },
    /hostPath\.path must not contain/,
  ),
  inSpec(
    'a host path of an unknown type',
    { volumes: [{ name: 'data', hostPath: { path: '/srv', type: 'directory' } }] },
    /hostPath\.type must be one of/,
  ),
  inSpec(
    'an ephemeral container',
    { ephemeralContainers: [{ name: 'debug', image: 'x' }] },
    /spec\.ephemeralContainers/,
  ),
  inMetadata(
    'a label whose name has a space',
    { labels: { 'a b': 'c' } },
    /metadata\.labels\.a b is not a valid name for a label/,
  ),
  inMetadata('an annotation with two slashes', { annotations: { 'a/b/c': '' } }, /metadata\.annotations\.a\/b\/c/),
  ...Object.entries({
    hostname: 'a.b',
    subdomain: 'A',
    priorityClassName: 'a_b',
    runtimeClassName: '',
    nodeSelector: { a: 'b c' },
    activeDeadlineSeconds: 0,
    hostAliases: [{ ip: '10.0.0.300' }],
    dnsConfig: { nameservers: ['dns'] },
    tolerations: [{ effect: 'NoSchedule' }],
    securityContext: { seccompProfile: { type: 'localhost' } },
  }).map(([name, value]) => inSpec(`spec.${name}`, { [name]: value }, new RegExp(`spec\\.${name}`))),
  inSpec('no name server', { dnsPolicy: 'None' }, /spec\.dnsConfig/),
  inSpec(
    'a kernel parameter without a name',
    { securityContext: { sysctls: [{ value: '1' }] } },
    /spec\.securityContext\.sysctls\[0\]\.name/,
  ),
  inSpec(
    'a shared process namespace beside that of the host',
    { hostPID: true, shareProcessNamespace: true },
    /spec\.shareProcessNamespace/,
  ),
  inSpec(
    'a volume of two sources',
    { volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/srv' } }] },
    /spec\.volumes\[0\] must have one source/,
  ),
  inSpec(
    'less than nothing in an emptyDir',
    { volumes: [{ name: 'a', emptyDir: { sizeLimit: '-1' } }] },
    /emptyDir\.sizeLimit/,
  ),
  inSpec(
    'a file without a path',
    { volumes: [{ name: 'a', downwardAPI: { items: [{ fieldRef: { fieldPath: 'metadata.labels' } }] } }] },
    /downwardAPI\.items\[0\]\.path/,
  ),
  inContainer(
    'one port of the host twice',
    { ports: [{ containerPort: 80 }, { containerPort: 80, hostPort: 80 }] },
    /ports\[1\]\.hostPort is also the hostPort/,
    { hostNetwork: true },
  ),
  inContainer(
    'another port of the host, with its network',
    { ports: [{ containerPort: 80, hostPort: 81 }] },
    /ports\[0\]\.hostPort must be the containerPort/,
    { hostNetwork: true },
  ),
  ...['HTTP', 'a--b', '80', 'x'.repeat(16)].map((name) =>
    inContainer(
      `a port of the name ${name}`,
      { ports: [{ containerPort: 80, name }] },
      /ports\[0\]\.name is not a valid name/,
    ),
  ),
  inContainer('an unknown protocol', { ports: [{ containerPort: 80, protocol: 'tcp' }] }, /protocol/),
  inContainer(
    'a variable of two values',
    { env: [{ name: 'A', value: 'b', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
    /env\[0\]\.valueFrom must not be beside a value/,
  ),
  inContainer(
    'a variable of an unknown field',
    { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.volumes' } } }] },
    /env\[0\]\.valueFrom\.fieldRef\.fieldPath/,
  ),
  inContainer(
    'a variable of an unknown resource',
    { env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'cpu' } } }] },
    /resourceFieldRef\.resource/,
  ),
  inContainer('a variable of nothing', { env: [{ name: 'A', valueFrom: {} }] }, /must have one of/),
  inContainer(
    'more than the limit',
    { resources: { limits: { cpu: '1500m' }, requests: { cpu: 2 } } },
    /requests\.cpu must not be more than its limit/,
  ),
  ...['1001u', '1000001n'].map((cpu) =>
    inContainer(
      `${cpu}, more than the limit`,
      { resources: { limits: { cpu: '1m' }, requests: { cpu } } },
      /requests\.cpu must not be more than its limit/,
    ),
  ),
  inContainer('an unknown resource', { resources: { limits: { mem: '1Gi' } } }, /limits\.mem is no resource/),
  inContainer(
    'a sub path from above',
    { volumeMounts: [{ name: 'data', mountPath: '/a', subPath: '../b' }] },
    /volumeMounts\[0\]\.subPath/,
    { volumes },
  ),
  ...[{}, { exec: {} }, { httpGet: {} }, { tcpSocket: { port: 0 } }, { grpc: { port: 65_536 } }].map((probe) =>
    inContainer(`the probe ${JSON.stringify(probe)}`, { livenessProbe: probe }, /containers\[0\]\.livenessProbe/),
  ),
  inContainer(
    'a probe that asks in small letters',
    { readinessProbe: { httpGet: { port: 80, scheme: 'https' } } },
    /readinessProbe\.httpGet\.scheme must be one of HTTP, HTTPS/,
  ),
  inContainer(
    'two successes of a liveness probe',
    { livenessProbe: { exec: { command: ['true'] }, successThreshold: 2 } },
    /livenessProbe must have no successThreshold but 1/,
  ),
  inSpec(
    'a probe of an init container',
    { initContainers: [{ name: 'first', image: 'x', livenessProbe: { exec: { command: ['true'] } } }] },
    /initContainers\[0\]\.livenessProbe needs restartPolicy: Always/,
  ),
  inContainer(
    'a hook of two kinds',
    { lifecycle: { preStop: { sleep: { seconds: 1 }, exec: { command: ['true'] } } } },
    /lifecycle\.preStop must have one of/,
  ),
]

export const soundPods: readonly { readonly what: string; readonly pod: object }[] = [
  { what: 'little', pod: pod({}) },
  { what: 'a name with dots', pod: pod({ name: 'a.b-c.d' }) },
  {
    what: 'nothing for something',
    pod: pod({ labels: null, annotations: {} }, { volumes: null, restartPolicy: null }),
  },
  {
    what: 'empty text for something',
    pod: pod({ namespace: '' }, { restartPolicy: '', dnsPolicy: '', hostname: '' }, { imagePullPolicy: '' }),
  },
  {
    what: 'every kind of probe and port',
    pod: pod(
      { annotations: { 'A/Owner': 'x' } },
      {
        hostAliases: [{ ip: '10.0.0.1', hostnames: ['a.b'] }, { ip: '::1' }],
        dnsConfig: { nameservers: ['fd00::1'], options: [{ name: 'ndots' }] },
        tolerations: [{ key: 'a/b', value: 'c', effect: 'NoExecute', tolerationSeconds: 5 }, { operator: 'Exists' }],
        initContainers: [
          {
            name: 'side',
            image: 'x',
            restartPolicy: 'Always',
            startupProbe: { grpc: { port: 80 }, successThreshold: 0 },
          },
          { name: 'first', image: 'x', ports: [{ containerPort: 80, hostPort: 80 }] },
        ],
        volumes: [
          { name: 'info', downwardAPI: { items: [{ path: 'a/b', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        ],
      },
      {
        ports: [
          { containerPort: 80, hostPort: 80, name: 'web-1', protocol: 'TCP' },
          { containerPort: 80, hostPort: 80, protocol: 'UDP' },
          { containerPort: 80, hostPort: 80, hostIP: '127.0.0.1' },
        ],
        env: [
          { name: 'a b', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "metadata.labels['x.y/z']" } } },
          { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.hugepages-2Mi' } } },
        ],
        resources: { limits: { cpu: 1, 'example.com/gpu': '1' }, requests: { cpu: '1000000u', memory: '0.5Gi' } },
        livenessProbe: { httpGet: { port: 'web-1', scheme: '' }, terminationGracePeriodSeconds: 1 },
        readinessProbe: { tcpSocket: { port: 80 }, successThreshold: 3 },
        lifecycle: { preStop: { sleep: { seconds: 1 } }, postStart: { httpGet: { port: 80 } } },
        securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } },
      },
    ),
  },
  { what: 'an empty label', pod: pod({ labels: { a: '', 'x.y/z': 'A_b.c-1' } }) },
  {
    what: 'much',
    pod: pod(
      {},
      {
        hostNetwork: true,
        restartPolicy: 'OnFailure',
        dnsPolicy: 'Default',
        initContainers: [{ name: 'first', image: 'x' }],
        tolerations: [{ operator: 'Exists' }],
        volumes: [
          { name: 'data', hostPath: { path: '/srv/..a', type: '' } },
          { name: 'scratch', emptyDir: {} },
          { name: 'nothing' },
        ],
      },
      {
        command: ['sh'],
        env: [{ name: 'a.b-c', value: '' }],
        ports: [{ containerPort: 65_535, hostPort: 65_535 }],
        volumeMounts: [
          { name: 'data', mountPath: '/a' },
          { name: 'data', mountPath: '/b' },
          { name: 'scratch', mountPath: 'relative' },
        ],
        imagePullPolicy: 'Never',
      },
    ),
  },
]

const volume = (what: string, source: object, field: RegExp): BrokenPod =>
  inSpec(what, { volumes: [...volumes, { name: 'w', ...source }] }, field)

const projected = (what: string, source: object, field: RegExp): BrokenPod =>
  volume(what, { projected: { sources: [{ downwardAPI: {} }, source] } }, field)

/** Pods that refer to objects of the API: the API server takes them, and kubelet runs none of them as a static pod. */
export const referringPods: readonly BrokenPod[] = [
  inSpec('a service account', { serviceAccountName: 'x' }, /spec\.serviceAccountName .*ServiceAccounts/),
  inSpec('its old name', { serviceAccount: 'x' }, /spec\.serviceAccount /),
  inSpec('a pull secret', { imagePullSecrets: [{ name: 'x' }] }, /spec\.imagePullSecrets\[0\] .*Secrets/),
  inContainer(
    'env from a Secret',
    { env: [{ name: 'A' }, { name: 'B', valueFrom: { secretKeyRef: { name: 'x', key: 'y' } } }] },
    /spec\.containers\[0\]\.env\[1\]\.valueFrom\.secretKeyRef/,
  ),
  inSpec(
    'env from a ConfigMap, in the second container',
    {
      containers: [{}, { envFrom: [{ configMapRef: { name: 'x' } }] }].map((more, n) => ({
        name: `c${n}`,
        image: 'b',
        ...more,
      })),
    },
    /spec\.containers\[1\]\.envFrom\[0\]\.configMapRef/,
  ),
  inSpec(
    'an init container',
    { initContainers: [{ name: 'i', image: 'j', envFrom: [{ secretRef: { name: 'x' } }] }] },
    /spec\.initContainers\[0\]\.envFrom\[0\]\.secretRef/,
  ),
  inSpec('resource claims', { resourceClaims: [{ name: 'x' }] }, /spec\.resourceClaims/),
  volume('a Secret volume', { secret: { secretName: 'x' } }, /spec\.volumes\[1\]\.secret .*Secrets/),
  volume('a ConfigMap volume', { configMap: { name: 'x' } }, /spec\.volumes\[1\]\.configMap/),
  volume('a claim', { persistentVolumeClaim: { claimName: 'x' } }, /spec\.volumes\[1\]\.persistentVolumeClaim/),
  volume('an ephemeral claim', { ephemeral: { volumeClaimTemplate: {} } }, /spec\.volumes\[1\]\.ephemeral/),
  volume('CSI', { csi: { driver: 'x', nodePublishSecretRef: { name: 'y' } } }, /spec\.volumes\[1\]\.csi/),
  volume('azureFile', { azureFile: { secretName: 'x', shareName: 'y' } }, /spec\.volumes\[1\]\.azureFile/),
  volume('glusterfs', { glusterfs: { endpoints: 'x', path: 'y' } }, /spec\.volumes\[1\]\.glusterfs/),
  volume(
    'a secret of a volume',
    { rbd: { monitors: ['m'], image: 'i', secretRef: { name: 'x' } } },
    /spec\.volumes\[1\]\.rbd\.secretRef/,
  ),
  projected('a token', { serviceAccountToken: { path: 'x' } }, /projected\.sources\[1\]\.serviceAccountToken/),
  projected('a trust bundle', { clusterTrustBundle: {} }, /clusterTrustBundle/),
  projected('a pod certificate', { podCertificate: {} }, /podCertificate/),
]
