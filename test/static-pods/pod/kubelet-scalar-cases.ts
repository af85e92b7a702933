/** Text, numbers, booleans and quantities, as kubelet's decoder reads them. */
import { json, plain, withContainer, withMetadata, withSpec, type KubeletCase } from './kubelet-case.js'

export const texts: readonly KubeletCase[] = [
  {
    what: 'a number as the value of a variable',
    text: withContainer('env: [{name: PORT, value: 8080}]'),
    runs: false,
    refusal: /line 6, column 59: spec\.containers\[0\]\.env\[0\]\.value must be text, but is a number: quote it/,
  },
  { what: 'the same in quotes', text: withContainer('env: [{name: PORT, value: "8080"}]'), runs: true },
  {
    what: 'numbers as arguments',
    text: withContainer('args: [-p, 80]'),
    runs: false,
    refusal: /spec\.containers\[0\]\.args\[1\] must be text, but is a number: quote it/,
  },
  {
    what: 'a number as a label',
    text: withMetadata('labels: {revision: 7}'),
    runs: false,
    refusal: /line 3, column 42: metadata\.labels\.revision must be text, but is a number: quote it/,
  },
  {
    what: 'an annotation that is switched on',
    text: withMetadata('annotations: {x: on}'),
    runs: false,
    refusal: /metadata\.annotations\.x must be text, but is a boolean: quote it/,
  },
  {
    what: 'a number as a name',
    text: plain.replace('web}', '123}'),
    runs: false,
    refusal: /metadata\.name must be text/,
  },
  { what: 'nothing as text', text: withContainer('env: [{name: PORT, value: ~}], workingDir: '), runs: true },
  { what: 'a date as text', text: withMetadata('annotations: {since: 2001-01-01}'), runs: true },
  { what: 'hours and minutes', text: withMetadata('annotations: {at: 22:22}'), runs: true },
  {
    what: 'text that YAML 1.2 has as a number',
    text: withMetadata('annotations: {a: 1e400, b: _1, c: 1__x}'),
    runs: true,
  },
  ...['1_000', '0b101', '0o7', '0x1F', '0644', '1e3', '.5', 'on', 'y', 'N', 'True', '9007199254740993'].map(
    (scalar) => ({
      what: `${scalar} as text`,
      text: withMetadata(`annotations: {a: ${scalar}}`),
      runs: false,
      refusal: /line 3, column 40: metadata\.annotations\.a must be text, but is a (?:number|boolean): quote it/,
    }),
  ),
]

export const numbers: readonly KubeletCase[] = [
  {
    what: 'text as a port',
    text: withContainer('ports: [{containerPort: "80"}]'),
    runs: false,
    refusal: /containerPort must be a whole number, .*but is other text: write it without quotes/,
  },
  { what: '1_000 as a port', text: withContainer('ports: [{containerPort: 1_000}]'), runs: true },
  { what: '0b101 as a port', text: withContainer('ports: [{containerPort: 0b101}]'), runs: true },
  { what: '1e3 as a port', text: withContainer('ports: [{containerPort: 1e3}]'), runs: true },
  {
    what: '1e400 as a port',
    text: withContainer('ports: [{containerPort: 1e400}]'),
    runs: false,
    refusal: /containerPort must be a whole number/,
  },
  {
    what: '1.0 as a port, in JSON',
    text: json('"terminationGracePeriodSeconds":1.0'),
    runs: false,
    refusal: /whole number/,
  },
  { what: '1e3 in JSON', text: json('"terminationGracePeriodSeconds":1e3'), runs: false, refusal: /whole number/ },
  { what: '1e400 in JSON, in an unknown field', text: json('"unknown":1e400'), runs: true },
  { what: 'half a second', text: withSpec('terminationGracePeriodSeconds: 0.5'), runs: false, refusal: /whole number/ },
  { what: 'the largest integer', text: withSpec('terminationGracePeriodSeconds: 9223372036854775807'), runs: true },
  {
    what: 'more than the largest integer',
    text: withSpec('terminationGracePeriodSeconds: 9223372036854775808'),
    runs: false,
    refusal: /terminationGracePeriodSeconds must be a whole number of at most 64 bits/,
  },
  {
    what: 'a user who is none',
    text: withSpec('securityContext: {runAsUser: root}'),
    runs: false,
    refusal: /runAsUser must/,
  },
  {
    what: 'a flag as text',
    text: withSpec('hostNetwork: "true"'),
    runs: false,
    refusal: /hostNetwork must be true or false, but is other text: write it without quotes/,
  },
  { what: 'a flag as a number', text: withSpec('hostPID: 1'), runs: false, refusal: /hostPID must be true or false/ },
  { what: 'a flag of YAML 1.1', text: withSpec('hostNetwork: yes'), runs: true },
  { what: 'quantities', text: withContainer('resources: {limits: {cpu: 1.5, memory: 1Gi}}'), runs: true },
  {
    what: 'a quantity beyond integers',
    text: withContainer('resources: {limits: {memory: 9007199254740993}}'),
    runs: true,
  },
  {
    what: 'a quantity that is none',
    text: withContainer('resources: {limits: {memory: 1 GiB}}'),
    runs: false,
    refusal: /limits\.memory must be a quantity/,
  },
  {
    what: 'a probe of a named port and one of a number',
    text: withContainer(
      'livenessProbe: {httpGet: {port: web}}, readinessProbe: {httpGet: {port: 80}}, ports: [{name: web, containerPort: 80}]',
    ),
    runs: true,
  },
  {
    what: 'a probe of no port',
    text: withContainer('livenessProbe: {httpGet: {port: 80.5}}'),
    runs: false,
    refusal: /httpGet\.port must be a whole number or text/,
  },
  {
    what: 'infinity, wherever it stands',
    text: withSpec('unknown: .inf'),
    runs: false,
    refusal: /line 6, column 12: JSON, /,
  },
]
