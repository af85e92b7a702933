import { forms } from './forms.js'
import { operations } from './operations.js'
import { publications } from './publications.js'
import type { Scene } from './scene.js'

export const scenes: readonly Scene[] = [...publications, ...forms, ...operations]
