/** Module hooks: the calls of the durable room that change a target go through test/runner/unchanged-answers.ts. They run in a thread of their own. */
import type { LoadHook } from 'node:module'

/** The module of src/durable that makes a call, and the call. */
const watched: Readonly<Record<string, string>> = {
  'publish/publish': 'publish',
  'operator/hold': 'setHold',
  'remove/removal': 'removePublished',
  'look/read-history': 'pruneHistory',
}

export const load: LoadHook = (url, context, nextLoad) => {
  const [, name = ''] = /\/src\/durable\/([a-z]+\/[a-z-]+)\.js$/.exec(url) ?? []
  const call = watched[name]
  if (call === undefined) return nextLoad(url, context)
  const real = JSON.stringify(`${url}?unwatched`)
  const answers = JSON.stringify(new URL('unchanged-answers.js', import.meta.url).href)
  const source = [
    `import { ${call} as real } from ${real}`,
    `import { watch } from ${answers}`,
    `export * from ${real}`,
    `export const ${call} = watch('${call}', real)`,
  ].join('\n')
  return { format: 'module', source, shortCircuit: true }
}
