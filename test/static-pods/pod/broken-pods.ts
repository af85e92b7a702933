/** Pods that kubelet refuses, with the field that the error names, and some that it takes although they look odd. */
export interface BrokenPod {
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

const volumes = [{ name: 'data', hostPath: { path: '/srv' } }]

export const brokenPods: readonly BrokenPod[] = [
  ...['a/b', '..', '.', 'Web', 'a b', 'a_b', 'x'.repeat(254)].map((name) => ({
    what: `the name ${name.slice(0, 9)}`,
    pod: pod({ name }),
    field: /metadata\.name is not a valid name/,
  })),
  { what: 'a namespace with a dot', pod: pod({ namespace: 'a.b' }), field: /metadata\.namespace/ },
  { what: 'labels as a list', pod: pod({ labels: ['a'] }), field: /metadata\.labels must be a map/ },
  {
    what: 'a label that is a map',
    pod: pod({ labels: { a: {} } }),
    field: /metadata\.labels\.a must be text, but is a map/,
  },
  {
    what: 'a label with a space',
    pod: pod({ labels: { a: 'b c' } }),
    field: /metadata\.labels\.a is not a valid label value/,
  },
  {
    what: 'a flag in words',
    pod: pod({}, { hostNetwork: 'please' }),
    field: /spec\.hostNetwork must be true or/,
  },
  {
    what: 'half a second',
    pod: pod({}, { terminationGracePeriodSeconds: 0.5 }),
    field: /terminationGracePeriodSeconds/,
  },
  {
    what: 'volumes as a map',
    pod: pod({}, { volumes: { data: {} } }),
    field: /spec\.volumes must be a list/,
  },
  {
    what: 'a restart policy in small letters',
    pod: pod({}, { restartPolicy: 'always' }),
    field: /spec\.restartPolicy/,
  },
  {
    what: 'an unknown DNS policy',
    pod: pod({}, { dnsPolicy: 'Cluster' }),
    field: /spec\.dnsPolicy must be one of/,
  },
  {
    what: 'two containers of one name',
    pod: pod({}, { containers: ['a', 'a'].map((name) => ({ name, image: 'b' })) }),
    field: /spec\.containers\[1\]\.name is also the name of another/,
  },
  {
    what: 'a container with the name of an init container',
    pod: pod({}, { initContainers: [{ name: 'web', image: 'b' }] }),
    field: /spec\.containers\[0\]\.name is also the name of another/,
  },
  {
    what: 'a container name with a dot',
    pod: pod({}, {}, { name: 'a.b' }),
    field: /containers\[0\]\.name is not a valid name/,
  },
  {
    what: 'an image with a space before it',
    pod: pod({}, {}, { image: ' web:1' }),
    field: /containers\[0\]\.image/,
  },
  {
    what: 'a command in one text',
    pod: pod({}, {}, { command: 'sh -c x' }),
    field: /command must be a list/,
  },
  { what: 'ports as a number', pod: pod({}, {}, { ports: 80 }), field: /ports must be a list/ },
  { what: 'port 0', pod: pod({}, {}, { ports: [{ containerPort: 0 }] }), field: /ports\[0\]\.containerPort/ },
  { what: 'env as a map', pod: pod({}, {}, { env: { A: 'b' } }), field: /env must be a list/ },
  {
    what: 'env without a name',
    pod: pod({}, {}, { env: [{ value: 'b' }] }),
    field: /env\[0\]\.name is missing/,
  },
  {
    what: 'a pull policy of nobody',
    pod: pod({}, {}, { imagePullPolicy: 'IfAbsent' }),
    field: /imagePullPolicy/,
  },
  {
    what: 'a mount of no volume',
    pod: pod({}, { volumes }, { volumeMounts: [{ name: 'date', mountPath: '/srv' }] }),
    field: /volumeMounts\[0\]\.name is not the name of a volume/,
  },
  {
    what: 'a mount without a place',
    pod: pod({}, { volumes }, { volumeMounts: [{ name: 'data' }] }),
    field: /volumeMounts\[0\]\.mountPath is missing/,
  },
  {
    what: 'two mounts in one place',
    pod: pod({}, { volumes }, { volumeMounts: ['data', 'data'].map((name) => ({ name, mountPath: '/srv' })) }),
    field: /volumeMounts\[1\]\.mountPath is also the path of another/,
  },
  {
    what: 'two volumes of one name',
    pod: pod({}, { volumes: [...volumes, ...volumes] }),
    field: /spec\.volumes\[1\]\.name is also the name of another/,
  },
  {
    what: 'a volume without a name',
    pod: pod({}, { volumes: [{ hostPath: { path: '/srv' } }] }),
    field: /spec\.volumes\[0\]\.name is not a valid name/,
  },
  {
    what: 'a host path without a path',
    pod: pod({}, { volumes: [{ name: 'data', hostPath: {} }] }),
    field: /hostPath\.path is missing/,
  },
  {
    what: 'a host path that climbs',
    pod: pod({}, { volumes: [{ name: 'data', hostPath: { path: '/srv/../etc' } }] }),
    field: /hostPath\.path must not contain/,
  },
  {
    what: 'a host path of an unknown type',
    pod: pod({}, { volumes: [{ name: 'data', hostPath: { path: '/srv', type: 'Dir' } }] }),
    field: /hostPath\.type must be one of/,
  },
  {
    what: 'an ephemeral container',
    pod: pod({}, { ephemeralContainers: [{ name: 'debug', image: 'x' }] }),
    field: /spec\.ephemeralContainers/,
  },
  {
    what: 'a label whose name has a space',
    pod: pod({ labels: { 'a b': 'c' } }),
    field: /metadata\.labels\.a b is not a valid name for a label/,
  },
  {
    what: 'an annotation with two slashes',
    pod: pod({ annotations: { 'a/b/c': '' } }),
    field: /metadata\.annotations\.a\/b\/c/,
  },
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
    securityContext: { seccompProfile: { type: 'Local' } },
  }).map(([name, value]) => ({
    what: `spec.${name}`,
    pod: pod({}, { [name]: value }),
    field: new RegExp(`spec\\.${name}`),
  })),
  { what: 'no name server', pod: pod({}, { dnsPolicy: 'None' }), field: /spec\.dnsConfig\.nameservers/ },
  {
    what: 'a kernel parameter without a name',
    pod: pod({}, { securityContext: { sysctls: [{ value: '1' }] } }),
    field: /spec\.securityContext\.sysctls\[0\]\.name/,
  },
  {
    what: 'a shared process namespace beside that of the host',
    pod: pod({}, { hostPID: true, shareProcessNamespace: true }),
    field: /spec\.shareProcessNamespace/,
  },
  {
    what: 'a volume of two sources',
    pod: pod({}, { volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/srv' } }] }),
    field: /spec\.volumes\[0\] must have one source, but has emptyDir and hostPath/,
  },
  {
    what: 'less than nothing in an emptyDir',
    pod: pod({}, { volumes: [{ name: 'a', emptyDir: { sizeLimit: '-1' } }] }),
    field: /emptyDir\.sizeLimit/,
  },
  {
    what: 'a file without a path',
    pod: pod(
      {},
      { volumes: [{ name: 'a', downwardAPI: { items: [{ fieldRef: { fieldPath: 'metadata.labels' } }] } }] },
    ),
    field: /downwardAPI\.items\[0\]\.path/,
  },
  {
    what: 'one port of the host twice',
    pod: pod({}, { hostNetwork: true }, { ports: [{ containerPort: 80 }, { containerPort: 80, hostPort: 80 }] }),
    field: /ports\[1\]\.hostPort is also the hostPort/,
  },
  {
    what: 'another port of the host, with its network',
    pod: pod({}, { hostNetwork: true }, { ports: [{ containerPort: 80, hostPort: 81 }] }),
    field: /ports\[0\]\.hostPort must be the containerPort/,
  },
  ...['HTTP', 'a--b', '80', 'x'.repeat(16)].map((name) => ({
    what: `a port of the name ${name}`,
    pod: pod({}, {}, { ports: [{ containerPort: 80, name }] }),
    field: /ports\[0\]\.name is not a valid name/,
  })),
  {
    what: 'an unknown protocol',
    pod: pod({}, {}, { ports: [{ containerPort: 80, protocol: 'tcp' }] }),
    field: /protocol/,
  },
  {
    what: 'a variable of two values',
    pod: pod({}, {}, { env: [{ name: 'A', value: 'b', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    field: /env\[0\]\.valueFrom must not be beside a value/,
  },
  {
    what: 'a variable of an unknown field',
    pod: pod({}, {}, { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.volumes' } } }] }),
    field: /env\[0\]\.valueFrom\.fieldRef\.fieldPath/,
  },
  {
    what: 'a variable of an unknown resource',
    pod: pod({}, {}, { env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'cpu' } } }] }),
    field: /resourceFieldRef\.resource/,
  },
  {
    what: 'a variable of nothing',
    pod: pod({}, {}, { env: [{ name: 'A', valueFrom: {} }] }),
    field: /must have one of/,
  },
  {
    what: 'more than the limit',
    pod: pod({}, {}, { resources: { limits: { cpu: '1500m' }, requests: { cpu: 2 } } }),
    field: /requests\.cpu must not be more than its limit/,
  },
  {
    what: 'an unknown resource',
    pod: pod({}, {}, { resources: { limits: { mem: '1Gi' } } }),
    field: /limits\.mem is no resource/,
  },
  {
    what: 'a sub path from above',
    pod: pod({}, { volumes }, { volumeMounts: [{ name: 'data', mountPath: '/a', subPath: '../b' }] }),
    field: /volumeMounts\[0\]\.subPath/,
  },
  ...[{}, { exec: {} }, { httpGet: {} }, { tcpSocket: { port: 0 } }, { grpc: { port: 65_536 } }].map((probe) => ({
    what: `the probe ${JSON.stringify(probe)}`,
    pod: pod({}, {}, { livenessProbe: probe }),
    field: /containers\[0\]\.livenessProbe/,
  })),
  {
    what: 'a probe that asks in small letters',
    pod: pod({}, {}, { readinessProbe: { httpGet: { port: 80, scheme: 'https' } } }),
    field: /readinessProbe\.httpGet\.scheme must be one of HTTP, HTTPS/,
  },
  {
    what: 'two successes of a liveness probe',
    pod: pod({}, {}, { livenessProbe: { exec: { command: ['true'] }, successThreshold: 2 } }),
    field: /livenessProbe\.successThreshold must be 1/,
  },
  {
    what: 'a probe of an init container',
    pod: pod({}, { initContainers: [{ name: 'first', image: 'x', livenessProbe: { exec: { command: ['true'] } } }] }),
    field: /initContainers\[0\]\.livenessProbe needs restartPolicy: Always/,
  },
  {
    what: 'a hook of two kinds',
    pod: pod({}, {}, { lifecycle: { preStop: { sleep: { seconds: 1 }, exec: { command: ['true'] } } } }),
    field: /lifecycle\.preStop must have one of/,
  },
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
        hostAliases: [{ ip: '010.0.0.1', hostnames: ['a.b'] }, { ip: '::1' }],
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
        resources: { limits: { cpu: 1, 'example.com/gpu': '1' }, requests: { cpu: '1000m', memory: '0.5Gi' } },
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
