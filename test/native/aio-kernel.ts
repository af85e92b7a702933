/* The kernel's side of AIO, as a test scripts it: it reads the requests by include/uapi/linux/aio_abi.h. */
import type { Test } from 'tap'
import { answer, type Answer, memoryAt } from './libc-calls.js'

/** struct iocb: what an fsync of a file holds besides aio_data, which is the caller's own. */
interface Request {
  readonly data: bigint
  readonly file: number
}

/** A completion: of the request that was taken as the so-manieth, or of these data, with what the fsync answered. */
type Completion = readonly [of: number | bigint, answer: number]

export interface Script {
  /** For each io_submit: how many it takes at most, or its errno; then all. */
  readonly submits?: readonly (number | 'EAGAIN' | 'EBADF' | 'EINVAL' | 'ENOSYS' | 'EPERM' | 'EACCES' | 'EIO')[]
  /** For each io_getevents; then all remaining ones, successfully. */
  readonly completions?: readonly (readonly Completion[] | 'EINTR' | 'EIO')[]
}

/** More requests than any script has, so that an endless loop fails. */
const mostRequests = 1000

const sizeOfRequest = 64

/** struct iocb of IOCB_CMD_FSYNC. Throws where anything else is there. */
function requestAt(address: bigint): Request {
  const view = memoryAt(address)
  const request = { data: view.getBigUint64(0, true), file: view.getUint32(20, true) }
  const expected = Buffer.alloc(sizeOfRequest)
  expected.writeBigUInt64LE(request.data, 0)
  expected.writeUInt16LE(2, 16)
  expected.writeUInt32LE(request.file, 20)
  const found = Buffer.from(view.buffer, view.byteOffset, sizeOfRequest)
  if (!expected.equals(found)) throw new Error(`no request for an fsync: ${found.toString('hex')}`)
  return request
}

/** The calls of the code under test, and all requests that the kernel took. */
export interface Kernel {
  readonly calls: string[]
  readonly taken: Request[]
}

/** Follows the script from now on. */
export function aioKernel(t: Test, { submits = [], completions = [] }: Script): Kernel {
  const calls: string[] = []
  const taken: Request[] = []
  const pending = new Set<Request>()
  const [toSubmit, toComplete] = [[...submits], [...completions]]
  answer(t, {
    io_submit(_context, count, pointers): Answer {
      const most = toSubmit.shift() ?? Number(count)
      const table = memoryAt(pointers)
      const requests = Array.from({ length: Number(count) }, (_, slot) => requestAt(table.getBigUint64(8 * slot, true)))
      calls.push(`submit ${requests.map(({ file }) => file).join()}: ${most}`)
      if (typeof most === 'string') return most
      for (const request of requests.slice(0, most)) {
        if (taken.push(request) > mostRequests) throw new Error('requests without end')
        pending.add(request)
      }
      return Math.min(most, requests.length)
    },
    io_getevents(_context, minimum, maximum, address): Answer {
      calls.push(`collect ${String(minimum)} to ${String(maximum)}`)
      const events = toComplete.shift() ?? [...pending].map(({ data }): Completion => [data, 0])
      if (typeof events === 'string') return events
      // It would wait for ever.
      if (events.length === 0) throw new Error('nothing is in flight')
      const view = memoryAt(address)
      for (const [slot, [of, result]] of events.entries()) {
        const data = typeof of === 'bigint' ? of : (taken[of]?.data ?? 0n)
        // struct io_event: data, obj, res, res2.
        view.setBigUint64(32 * slot, data, true)
        view.setBigInt64(32 * slot + 16, BigInt(result), true)
        for (const request of pending) if (request.data === data) pending.delete(request)
      }
      return events.length
    },
  })
  return { calls, taken }
}
