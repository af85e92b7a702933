/** The seven checks of an adoption, in their order. Scripts and alerts rely on the names: none is ever renamed. */
export type AdoptionCheck =
  'exists' | 'noOtherWriter' | 'realDirectory' | 'fileSystem' | 'safeOwner' | 'space' | 'content'

/** What one check has found. */
export interface AdoptionResult {
  readonly check: AdoptionCheck
  /** `pending`: not as it has to be now, and looked at again; `refused`: not until somebody acts. */
  readonly verdict: 'passed' | 'pending' | 'refused'
  /** Nothing but a person's doing changes it. */
  readonly terminal: boolean
  readonly message: string
  /** What to do; null where nothing is to be done. */
  readonly advice: string | null
}

/** Files that are there, or will be. */
export interface AdoptedFiles {
  readonly paths: readonly string[]
  readonly read: (path: string) => Promise<Uint8Array>
}

/** How a directory is taken over that somebody else made. */
export interface Adopting {
  /** Even where it holds what the new content does not have. */
  readonly replace: boolean
  /** What is wrong with the keys and certificates among these files; undefined: nothing. */
  readonly keyPairs?: (files: AdoptedFiles) => Promise<string | undefined>
}
