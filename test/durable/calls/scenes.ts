import { batches } from './batches.js'
import { beside } from './beside.js'
import { forms } from './forms.js'
import { goingBack } from './going-back.js'
import { leaving } from './leaving.js'
import { links } from './links.js'
import { looks } from './looks.js'
import { operations } from './operations.js'
import { ownFiles } from './own-files.js'
import { places } from './places.js'
import { publications } from './publications.js'
import { removing } from './removing.js'
import { retiring } from './retiring.js'
import type { Scene } from './scene.js'

export const scenes: readonly Scene[] = [
  ...publications,
  ...forms,
  ...operations,
  ...batches,
  ...retiring,
  ...removing,
  ...places,
  ...beside,
  ...links,
  ...looks,
  ...leaving,
  ...goingBack,
  ...ownFiles,
]
