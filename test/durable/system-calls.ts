import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Test } from 'tap'

type Call = (...args: unknown[]) => unknown

/** Puts another function in place of one of node:fs, for all modules that have imported it, until the test ends. */
export function replaceCall(t: Test, name: string, replacement: (real: Call) => Call): void {
  const functions = fs as unknown as Record<string, Call | undefined>
  const real = functions[name]
  if (real === undefined) throw new Error(`node:fs has no ${name}`)
  functions[name] = replacement(real)
  syncBuiltinESMExports()
  t.teardown(() => {
    functions[name] = real
    syncBuiltinESMExports()
  })
}

/** These files hold these texts meanwhile. */
export function texts(t: Test, files: Record<string, string>): void {
  replaceCall(
    t,
    'readFileSync',
    (real) =>
      (path, ...rest) =>
        files[String(path)] ?? real(path, ...rest),
  )
}
