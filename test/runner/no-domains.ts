/*
 * Loaded before a process of tests. tap follows every promise through `async_hooks`, so that it can tell to which test an error
 * belongs that nobody caught. That takes 10 to 30 % of a test's CPU (25 % of static-pods/monitor, 15 % of durable/crashes), and here it
 * tells little: such an error ends the process, Node prints it, and the runner has its file fail.
 */
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

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
