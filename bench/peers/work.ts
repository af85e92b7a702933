/** The work of the peers. */
export interface Work {
  readonly name: string
  /** Directories, each in another parent. */
  readonly targets: number
  /** Bytes of each file in each of them. */
  readonly files: readonly number[]
  /** The content is there already. */
  readonly unchanged?: boolean
  /** Another program has written so many bytes to another file just before, without a sync. */
  readonly dirty?: number
  /** Takes seconds where each file is synced by itself: measured in fewer rounds. */
  readonly long?: boolean
}

const small = 4096
const many = (count: number): number[] => Array.from({ length: count }, () => small)

/** The counts of the picture. */
const counts = [1, 2, 10, 50, 200] as const

export const works: readonly Work[] = [
  ...counts.map((count) => ({
    name: count === 1 ? '1 file' : `${count} files`,
    targets: 1,
    files: many(count),
    long: count >= 50,
  })),
  { name: '1 × 1 MiB', targets: 1, files: [2 ** 20] },
  { name: '30 × 2 files', targets: 30, files: many(2), long: true },
  { name: '200 × 2 files, unchanged', targets: 200, files: many(2), unchanged: true, long: true },
  { name: '10 files beside 200 MB', targets: 1, files: many(10), dirty: 200e6, long: true },
]

export const pictured = ({ targets, files, dirty }: Work): boolean =>
  targets === 1 && dirty === undefined && files.every((bytes) => bytes === small)
