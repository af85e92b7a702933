/** Milliseconds from now that a Retry-After header asks for: seconds, or an HTTP date. */
export function retryAfter(value: unknown, now = Date.now()): number | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}
