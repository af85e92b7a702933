import type { ApiResponse } from './client.js'
import { field } from './failure.js'

/**
 * Whether the API server itself says that an object does not exist: a 404 with a metav1.Status of reason NotFound. The 404 of a
 * proxy, or of a server that does not serve the path, says nothing about the object.
 */
export function isAbsent({ status, body }: Pick<ApiResponse, 'status' | 'body'>): boolean {
  return status === 404 && field(body, 'reason') === 'NotFound'
}
