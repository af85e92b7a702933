import { spawnSync } from 'node:child_process'
import t from 'tap'

const library = new URL('../../native/', import.meta.url).href

/** Turns core dumps off in a separate process, without capabilities; its limit then, and whether it can be dumped. */
function run(hardLimit: number) {
  const script = `
    import { readFileSync } from 'node:fs'
    import { disableCoreDumps } from ${JSON.stringify(`${library}index.js`)}
    import { callNow, declareSystemCall, systemCallNumber } from ${JSON.stringify(`${library}libc.js`)}
    disableCoreDumps()
    const [, limit, hard] = /^Max core file size\\s+(\\S+)\\s+(\\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))
    const getDumpable = 3
    const prctl = declareSystemCall(['int'])
    const { result } = callNow(prctl, systemCallNumber('prctl'), getDumpable)
    process.stdout.write(limit + ' ' + hard + ' ' + result)`
  return spawnSync(
    'prlimit',
    [
      ...[`--core=0:${hardLimit}`, 'setpriv', '--inh-caps=-all', '--bounding-set=-all'],
      ...[process.execPath, '--input-type=module', '--eval', script],
    ],
    { encoding: 'utf8', env: { PATH: process.env.PATH } },
  )
}

const skip = process.getuid?.() === 0 ? false : 'needs root, to give up its capabilities'

void t.test('the limit is one byte, which stops pipe handlers too', { skip }, async (t) => {
  const { stdout, stderr } = run(1000)
  t.equal(stdout, '1 1 1', stderr)
})

// A container runtime may set it, and an agent without CAP_SYS_RESOURCE must start all the same.
void t.test('where the hard limit is zero, the process cannot be dumped', { skip }, async (t) => {
  const { stdout, stderr } = run(0)
  t.equal(stdout, '0 0 0', stderr)
})
