/*
 * Loaded before a process of tests, to spare CPU.
 *
 * tap follows every promise through `async_hooks`, so that it can tell to which test an uncaught error belongs. That
 * takes 10 to 30 % of a test's CPU (25 % of static-pods/monitor), and here it tells little: such an error ends
 * the process, Node prints it, and the runner has its file fail.
 *
 * A process of tests ends after some seconds: code that V8 optimizes seldom runs long enough to repay it. With thirty times its budget,
 * durable/failing-calls takes 3.8 s of CPU instead of 5.2 s, and static-pods/rollout 3.3 s instead of 4.2 s; long-running code is
 * optimized all the same. Node compiles each built-in module that it loads from then on anew, without its embedded code cache: this file
 * loads those that nearly all tests use before (judge.test: 144 ms of CPU instead of 173).
 *
 * Calls that change a target are watched (unchanged-answers.ts), but where the runner has not drawn the process. It takes a third of the CPU
 * of a test that publishes, half of that for the thread of the module hooks.
 */
import 'node:assert'
import asyncHooks from 'node:async_hooks'
import 'node:child_process'
import 'node:crypto'
import 'node:dgram'
import 'node:fs/promises'
import { register, syncBuiltinESMExports } from 'node:module'
import 'node:net'
import 'node:os'
import 'node:perf_hooks'
import 'node:stream/promises'
import 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import 'node:vm'
import 'node:worker_threads'

class NoHook implements asyncHooks.AsyncHook {
  enable(): this {
    return this
  }

  disable(): this {
    return this
  }
}

asyncHooks.createHook = () => new NoHook()
syncBuiltinESMExports()

setFlagsFromString('--interrupt-budget=4000000')

if (process.env['HOLDFAST_WATCH'] !== 'no') register('./watch-door.js', import.meta.url)
