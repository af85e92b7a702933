import type { Target } from '../target.js'

/** Loaded late, each alone: its coverage begins with its modules. */
const loaders = {
  watch: async () => (await import('./watch.js')).watch,
  records: async () => (await import('./records.js')).records,
  pem: async () => (await import('./pem.js')).pem,
  yaml: async () => (await import('./yaml.js')).yaml,
  kubeconfig: async () => (await import('./kubeconfig.js')).kubeconfig,
  answers: async () => (await import('./answers.js')).answers,
  dbus: async () => (await import('./dbus.js')).dbus,
  selectors: async () => (await import('./selectors.js')).selectors,
  durations: async () => (await import('./durations.js')).durations,
  mountinfo: async () => (await import('./mountinfo.js')).mountinfo,
} as const satisfies Readonly<Record<string, () => Promise<unknown>>>

export const targetNames: readonly string[] = Object.keys(loaders)

/** Readers with a fault each, for the fuzzer's own test. */
const plantedNames = /^planted-(\w+)$/

export async function loadTarget(name: string): Promise<Target> {
  const planted = plantedNames.exec(name)?.[1]
  if (planted !== undefined) return (await import('./planted.js')).planted(planted)
  const load = (loaders as Readonly<Record<string, () => Promise<unknown>>>)[name]
  if (load === undefined) throw new RangeError(`no target ${name}; there are ${targetNames.join(', ')}`)
  return (await load()) as Target
}
