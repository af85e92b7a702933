import type { ApiResponse } from './client.js'
import { field } from './api-error.js'

/**
 * The one rule of absence: the API server itself says of this one object that it does not exist, in a 404 with a metav1.Status of
 * reason NotFound. The 404 of a proxy, or of a server that does not serve the path, says nothing about the object.
 */
export function isAbsent({ status, body }: Pick<ApiResponse, 'status' | 'body'>, name?: string): boolean {
  if (status !== 404 || field(body, 'reason') !== 'NotFound') return false
  const named = field(field(body, 'details'), 'name')
  return name === undefined || named === undefined || named === name
}
