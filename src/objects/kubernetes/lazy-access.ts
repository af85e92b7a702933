import type { AccessSnapshot, ClusterAccess } from './access.js'

/**
 * Access that is loaded when it is first needed, and tried again at the next need where loading fails: an agent may
 * start before its kubeconfig is there.
 */
export function lazyAccess(load: () => Promise<ClusterAccess>): ClusterAccess {
  let loaded: ClusterAccess | undefined
  let loading: Promise<ClusterAccess> | undefined
  const obtain = async (): Promise<ClusterAccess> => {
    loading ??= load().finally(() => (loading = undefined))
    loaded ??= await loading
    return loaded
  }
  return {
    get origin() {
      return loaded?.origin ?? 'not loaded'
    },
    get namespace() {
      return loaded?.namespace
    },
    current: async () => (loaded ?? (await obtain())).current(),
    differs: async (rejected: AccessSnapshot) => loaded !== undefined && loaded.differs(rejected),
    renew: async (rejected: AccessSnapshot) => (loaded ?? (await obtain())).renew(rejected),
  }
}
