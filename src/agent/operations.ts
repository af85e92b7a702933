/** Names of the agent's operations: keys of its queues, the same in logs and status. */
export const publishOperation = (path: string) => `publish ${path}`
export const hooksOperation = (path: string) => `afterPublish ${path}`

/** Why an operation is due, where no object is the cause. */
export const causes = { start: 'start', driftCheck: 'drift check', configuration: 'configuration' } as const
