import { drop, without, becomes, move, quoted } from './changes.js'
import { caught, model, type Mutation } from './mutation.js'

/** What prune removes, and the links and files that are replaced and removed beside the revisions. */
export const prunes: readonly Mutation[] = [
  ...caught([model('static pod: install meets prune')], {
    'prune: no lock': [becomes(undefined, 'prune', 'lock'), drop('prune', 'release')],
  }),
  ...caught([model('static pod: prune')], {
    'prune: no fsync where a predecessor has removed all': move('removeAll', 'return 1/2', 'syncRemovals 1/2'),
    'prune: the last known good revision goes, too': becomes(undefined, 'verdicts', 'get'),
  }),
  ...caught([model('static pod: prune, after another program has replaced the live manifest')], {
    'prune: what names a revision is not synced': drop('prune', 'syncVerdicts'),
    'the names of a directory: no fsync of it': without('DurableCalls.syncNames', 'anchor 1/4'),
  }),
  ...caught([model('static pod: prune, below a directory that another program has moved')], {
    'the names of a directory: no fsync of what is above it': without('DurableCalls.syncNames', 'openAncestors 1/2'),
  }),
  ...caught([model('static pod: prune, after another program has written the live manifest')], {
    'the names of a directory: no fsync of its files': drop('DurableCalls.syncNames', 'type'),
  }),
  ...caught([model('static pod: link, below a directory that another program has moved')], {
    'a link: no fsync of what is above it': without('DurableCalls.replaceLink', '[]', 1),
  }),
  ...caught([model('static pod: removal of a manifest, below a directory that another program has moved')], {
    'removal of a file: no fsync of what is above it': without('DurableCalls.removeFile', '[]', 1),
  }),
  ...caught([model('static pod: monitor, ready')], {
    'removal of a file: no fsync where a predecessor has removed it': quoted(
      'DurableCalls.removeFile',
      'await fsyncAll(',
      'if (removed) await fsyncAll(',
    ),
  }),
]
