import { drop, without, becomes, keep, move, quoted } from './changes.js'
import { caught, model, ownTest, ownTestOfRoot, type Mutation } from './mutation.js'
import { prunes } from './prune-mutations.js'

/** What install, prune, monitor and rollout do to a node. */
export const staticPods: readonly Mutation[] = [
  ...caught([ownTest('killed-install')], {
    'what a killed installation staged has the name of its own revision': without('revisionRequest', 'family'),
  }),
  ...caught([ownTest('host-path-spellings')], {
    'rollout: a hostPath is compared by its text': keep('hostPathUsers', '? 2/2', 2),
  }),
  ...caught([model('static pod: install')], {
    'install: the manifest before what it names': move('install', 'publishManifests', 'publishDirectories'),
  }),
  ...caught([model('static pod: install of a revision that another program wrote and made live')], {
    'install: a revision that is in use is not synced': drop('revisionStep', 'syncTree'),
    'tree: no fsync of its name': without('DurableCalls.syncTree', 'anchor 2/3'),
    'tree: no fsync of files': without('syncBelow', "'file'"),
    'tree: no fsync of its own names': without('DurableCalls.syncTree', '[]', 0),
    'tree: no fsync of ancestors': without('DurableCalls.syncTree', 'openAncestors'),
  }),
  ...caught([model('static pod: install meets prune')], {
    'install: no lock': becomes(undefined, 'install', 'lock'),
  }),
  ...caught([model('static pod: the first install')], {
    'install: leftovers stay where no revision is published': becomes(true, 'install', '>'),
  }),
  ...caught([model('static pod: monitor, ready')], {
    'link: removed before it is made again': quoted(
      'DurableCalls.replaceLink',
      'await replaceEntry(',
      'await (found && this.fs.removeFile(parent, name)), await replaceEntry(',
    ),
    'monitor: its manifest goes before the link is made': move(
      'MonitoredRevision.ready',
      '#leave',
      'recordLastKnownGood',
    ),
    'monitor: a link that is visible is not made durable': quoted(
      'MonitoredRevision.ready',
      'await recordLastKnownGood(',
      'if ((await lastKnownGood(request, disk)) !== revision) await recordLastKnownGood(',
    ),
  }),
  ...caught([model('static pod: monitor, ready, on a node that another program wrote')], {
    'last known good: what the link leads to is not synced': drop('recordLastKnownGood', 'isCommitted'),
  }),
  ...caught([model('static pod: fallback meets install')], {
    'monitor: no lock while it decides': becomes(undefined, 'MonitoredRevision.around', '#lock'),
  }),
  ...caught([model('static pod: fallback to the newest older revision')], {
    'fallback: the manifest before the link': move('fallBack', 'publishFiles', 'leadLink'),
  }),
  ...caught([model('static pod: rollout, ready')], {
    'rollout: a manifest before the tree that it reads': drop('Rollout.#forward', '#locked'),
    'rollout: the old tree goes before the state says that all are ready': drop('Rollout.#forward', 'phase'),
    'rollout: the state ends before the old tree goes': quoted(
      'Rollout.end',
      'const own = tree ?',
      `await closeState(this.directory, { outcome, request }, kept, this.means)
    const own = tree ?`,
    ),
    'rollout: what a kill has staged of the state stays': drop('underRolloutLock', 'tidyState'),
    'rollout: an end that is visible is not made durable': becomes(undefined, 'unfinishedIn', 'closeState'),
    'two trees change places: no fsync': drop('swapPlaces', 'settle'),
    'the tree that was kept: no fsync after its removal': drop('removeTarget', 'fsyncAll'),
  }),
  ...caught([ownTest('rollout-probes')], {
    'rollout: no probe is tried before anything changes': becomes([], 'tryBefore', 'tryProbes'),
    'rollout: what the old directory holds does not count beside the new one': without(
      'filesAfter',
      'ProbeFiles',
      0,
      1,
    ),
  }),
  ...caught([ownTestOfRoot('rollout-attributes')], {
    'rollout: one mode and one owner for all of the new tree': becomes(true, 'PlannedTree.ofDirectory', '==='),
    'rollout: the ACLs of the new tree are left out': becomes(true, 'OldMetadata.#extendedOf', '==='),
    'rollout: an ACL alone is no difference': without('DurableCalls.difference', 'map 2/2'),
    'rollout: the labels of the live tree are lost': without('stageRolledTree', 'inPlaceOf'),
  }),
  ...prunes,
]
