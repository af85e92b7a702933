/** The pod and the container of a process, as far as its control groups tell. */
export interface PodAndContainer {
  /** The pod's UID; a static pod's is its manifest's hash. */
  readonly pod?: string
  /** The container's ID, as crictl takes it. */
  readonly container?: string
}

/**
 * Reads /proc/PID/cgroup (cgroups(7)) as kubelet, containerd, CRI-O and Docker name their groups:
 * `…/kubepods-burstable-pod1f3a_….slice/cri-containerd-ID.scope` with systemd, `/kubepods/burstable/pod1f3a-…/ID` without.
 */
export function podAndContainer(text: string): PodAndContainer {
  const pod = /(?:^|[/-])pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:\/|$)/m.exec(
    text,
  )
  const container = /(?:\/|-)([0-9a-f]{64})(?:\.scope)?(?:\/|$)/m.exec(text)
  return {
    ...(pod?.[1] !== undefined && { pod: pod[1].replaceAll('_', '-') }),
    ...(container?.[1] !== undefined && { container: container[1] }),
  }
}
