import type { Case } from './case.js'
import { installerCases } from './installer-cases.js'
import { otherCases } from './other-cases.js'

export const cases = { ...installerCases, ...otherCases } satisfies Record<string, Case>

export type CaseName = keyof typeof cases
