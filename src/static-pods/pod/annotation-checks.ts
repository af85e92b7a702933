/** Checks of annotations that kubelet's validation reads, and of the profiles that they name. */
import { asList, asMap, asText, type JsonMap } from '../json.js'
import { textOf, type Check, type FieldPlace } from './place.js'
import { isLocal } from './text-checks.js'

const seccomp = 'seccomp.security.alpha.kubernetes.io/pod'
const seccompOf = 'container.seccomp.security.alpha.kubernetes.io/'
const appArmorOf = 'container.apparmor.security.beta.kubernetes.io/'
/** Holds tolerations as JSON. */
export const oldTolerations = 'scheduler.alpha.kubernetes.io/tolerations'

/** undefined for what is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const areMaps = (value: unknown) => value === null || (Array.isArray(value) && value.every((item) => asMap(item)))
const isOf = (text: string, defaults: readonly string[]) => [...defaults, 'unconfined'].includes(text)
const ofSeccomp = ['runtime/default', 'docker/default']

function isAnnotation(text: string, name: string, containers: () => readonly string[]): boolean {
  if (name === 'controller.kubernetes.io/pod-deletion-cost')
    return /^(?:0|-\d+|[1-9]\d*)$/.test(text) && BigInt.asIntN(32, BigInt(text)) === BigInt(text)
  if (name === seccomp || name.startsWith(seccompOf))
    return isOf(text, ofSeccomp) || (text.startsWith('localhost/') && isLocal(text.slice('localhost/'.length)))
  if (name === oldTolerations) return text === '' || areMaps(jsonOf(text))
  if (!name.startsWith(appArmorOf)) return true
  const isProfile = text === '' || isOf(text, ['runtime/default']) || text.startsWith('localhost/')
  return isProfile && containers().includes(name.slice(appArmorOf.length))
}

/** kubelet adds one annotation, with a uid. */
const areShort: Check = (value, { metadata }) => {
  const own = 'kubernetes.io/config.hash'.length + (textOf(metadata.uid).length || 32)
  const sizes = Object.entries(asMap(value) ?? {}).map(([name, text]) => Buffer.byteLength(name + textOf(text)))
  return sizes.reduce((all, size) => all + size, own) <= 256 * 1024
}

/** The profile of a field and that of an annotation must be the same (validateSeccompAnnotationsAndFieldsMatch). */
function isSame(
  profile: JsonMap | undefined,
  { metadata }: FieldPlace,
  name: string,
  defaults: readonly string[],
): boolean {
  const annotation = asText(asMap(metadata.annotations)?.[name])
  if (profile === undefined || annotation === undefined) return true
  if (profile.type === 'Unconfined') return annotation === 'unconfined'
  if (profile.type === 'RuntimeDefault') return defaults.includes(annotation)
  return profile.type !== 'Localhost' || annotation === `localhost/${textOf(profile.localhostProfile)}`
}

const namesOf = (list: unknown) => asList(list).map((item) => textOf(asMap(item)?.name))

export const annotationChecks: Readonly<Record<string, Check>> = {
  annotation: (value, { spec }, name) =>
    isAnnotation(textOf(value), name, () => [...namesOf(spec.containers), ...namesOf(spec.initContainers)]),
  'short annotations': areShort,
  'no copy': (_, __, name) => name !== 'kubernetes.io/config.mirror',
  'annotated seccomp': (value, place) => {
    const name = place.path[1] === 'securityContext' ? seccomp : seccompOf + textOf(place.container.name)
    return isSame(asMap(value), place, name, ofSeccomp)
  },
  'annotated AppArmor': (_, place) => {
    const [own, ofPod] = [place.container, place.spec].map((has) => asMap(asMap(has.securityContext)?.appArmorProfile))
    return isSame(own ?? ofPod, place, appArmorOf + textOf(place.container.name), ['runtime/default'])
  },
}
