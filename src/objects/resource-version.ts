/**
 * Resource versions of one resource type may be compared as numbers: https://kubernetes.io/docs/reference/using-api/api-concepts/
 * (official since Kubernetes 1.35: decimal, no sign, no leading zero).
 */

/** Whether it has the form that can be compared. What files give (`sha256:…`) has not. */
export function isComparable(resourceVersion: string): boolean {
  return /^[1-9][0-9]*$/.test(resourceVersion)
}

/**
 * Negative: `a` is older than `b`. Zero: the same. Positive: newer. Undefined: they cannot be compared.
 * Any number of digits is compared exactly: the longer one is the greater one.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (!isComparable(a) || !isComparable(b)) return undefined
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : Number(a > b)
}
