import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Collects garbage every 20 ms until the work ends: what only a weak reference holds is lost as it is in a long run. */
export async function underGarbageCollection<T>(work: Promise<T>): Promise<T> {
  const collecting = setInterval(collect, 20)
  try {
    return await work
  } finally {
    clearInterval(collecting)
  }
}
