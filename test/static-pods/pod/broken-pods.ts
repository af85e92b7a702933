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
