import { compound, model, type Mutation, mutation, ownTest, ownTestOfRoot } from './mutation.js'
import { prunes } from './prune-mutations.js'

const install = '/src/static-pods/install/install.ts'
const monitor = '/src/static-pods/monitor/monitor.ts'
const fallBack = '/src/static-pods/monitor/fall-back.ts'
const links = '/src/static-pods/monitor/last-known-good.ts'
const rollout = '/src/static-pods/rollout/rollout.ts'
const steps = '/src/static-pods/rollout/rollout-steps.ts'
const publishDirectories =
  'const directories: InstallLine[] = [...kept, ...(await disk.publishDirectories(requests, signal))]'
const rolledAttributes = ownTestOfRoot('static-pods/rollout/rollout-attributes')
const story = (only: string) => model(`static pod: ${only}`)

/** What install, prune, monitor and rollout do to a node. */
export const staticPods: readonly Mutation[] = [
  ...prunes,
  mutation(
    'what a killed installation staged has the name of its own revision',
    '/src/static-pods/install/install-plan.ts',
    '    family: revisionFamily(pod),\n',
    '',
    ownTest('static-pods/install/killed-install'),
  ),
  mutation(
    'rollout: a hostPath is compared by its text',
    '/src/static-pods/host-path-users.ts',
    'look ? await namesByKernel(fs, path) : [plainName(path)]',
    '[path]',
    ownTest('static-pods/host-path-spellings'),
  ),
  mutation(
    'rollout: what another process has mounted of the old tree goes',
    '/src/durable/posix/holdings.ts',
    "this.#add({ pid, what: 'mount', path: mountPoint, locations: [location(mount.device, mount.root)] })",
    '',
    ownTestOfRoot('durable/look/in-use'),
  ),
  mutation(
    'install: the manifest before what it names',
    install,
    publishDirectories,
    `await publishManifests(plan, settings)\n    ${publishDirectories}`,
    story('install'),
  ),
  mutation(
    'install: an equal revision that nobody has synced counts as unchanged',
    install,
    'if (equal && (await disk.isCommitted(path)) === true)',
    'if (equal)',
    story('install of a revision that another program wrote'),
  ),
  mutation(
    'install: a revision that is in use is not synced',
    install,
    'if (!lookOnly) await disk.syncTree(path)',
    '',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'install: no lock',
    install,
    '(await disk.lock(join(dirname(plan.directory.target), operationLockName(plan.pod)), timeLeft(), signal))',
    'undefined',
    story('install meets prune'),
  ),
  mutation(
    'install: what is live is only looked at before the lock',
    install,
    '    await refuseOlder(plan, settings)\n    return',
    '    return',
    story('install meets a newer install'),
  ),
  mutation(
    'install: leftovers stay where no revision is published',
    install,
    'removeLeftovers(plan, settings, publish.length > 0)',
    'removeLeftovers(plan, settings, true)',
    story('the first install'),
  ),
  mutation(
    'link: no fsync',
    'disk/operations.ts',
    '      visible()\n      await fsyncAll(this.fs, [parent, ...ancestors])\n      await probeJournal',
    '      visible()\n      await probeJournal',
    story('monitor, ready'),
  ),
  mutation(
    'link: removed before it is made again',
    'disk/operations.ts',
    "await this.fs.rename(parent, staging, parent, name, 'replace')",
    "if (found) await this.fs.removeFile(parent, name)\n        await this.fs.rename(parent, staging, parent, name, 'replace')",
    story('monitor, ready'),
  ),
  mutation(
    'tree: no fsync of its name',
    'disk/operations.ts',
    '[root, place.anchor, ...',
    '[root, ...',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of files',
    'path/sync-below.ts',
    "if (entry.type === 'file' || entry.type === 'directory') all.push(entry)",
    "if (entry.type === 'directory') all.push(entry)",
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of directories',
    'path/sync-below.ts',
    "if (entry.type === 'file' || entry.type === 'directory') all.push(entry)",
    "if (entry.type === 'file') all.push(entry)",
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of its own names',
    'disk/operations.ts',
    '[root, place.anchor, ...',
    '[place.anchor, ...',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of ancestors',
    'disk/operations.ts',
    'root, [root, place.anchor, ...(await openAncestors(scope, place, place.anchor))]',
    'root, [root, place.anchor]',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'last known good: what the link leads to is not synced',
    links,
    'if ((await disk.isCommitted(directory)) !== true) await disk.syncTree(directory)',
    '',
    story('monitor, ready, on a node that another program wrote'),
  ),
  mutation(
    'monitor: its manifest goes before the link is made',
    monitor,
    '    await recordLastKnownGood(request, revision, disk)',
    '    await this.#leave()\n    await recordLastKnownGood(request, revision, disk)',
    story('monitor, ready'),
  ),
  mutation(
    'monitor: a link that is visible is not made durable',
    monitor,
    '    await recordLastKnownGood(request, revision, disk)',
    '    if ((await lastKnownGood(request, disk)) !== revision) await recordLastKnownGood(request, revision, disk)',
    story('monitor, ready'),
  ),
  mutation(
    'monitor: no lock while it decides',
    monitor,
    'if (manifestLock !== undefined) held',
    'if (manifestLock === "") held',
    story('fallback meets install'),
  ),
  mutation(
    'fallback: no link to what becomes live',
    fallBack,
    '      await leadLink(places, revision, disk, log)\n',
    '',
    story('fallback to the newest older revision'),
  ),
  compound(
    'fallback: the manifest before the link',
    [
      [fallBack, '      await leadLink(places, revision, disk, log)\n', ''],
      [
        fallBack,
        '      await disk.publishFiles([request], undefined)\n',
        '      await disk.publishFiles([request], undefined)\n      await leadLink(places, revision, disk, log)\n',
      ],
    ],
    story('fallback to the newest older revision'),
  ),
  mutation(
    'rollout: a manifest before the tree that it reads',
    steps,
    'if (tree) await this.#locked(() => bringTree(tree, means.disk))',
    '',
    story('rollout, ready'),
  ),
  mutation(
    'rollout: the old tree goes before the state says that all are ready',
    steps,
    "    await this.#write({ phase: 'proven' })\n",
    '',
    story('rollout, ready'),
  ),
  mutation(
    'rollout: the state ends before the old tree goes',
    steps,
    '    const own = tree ?',
    '    await closeState(this.directory, { outcome, request }, kept, this.means)\n    const own = tree ?',
    story('rollout, ready'),
  ),
  mutation(
    'rollout: no probe is tried before anything changes',
    rollout,
    'return tryProbes(probes, plan, means.signal, means.log)',
    'return []',
    ownTest('static-pods/rollout/rollout-probes'),
  ),
  mutation(
    'rollout: what the old directory holds does not count beside the new one',
    '/src/static-pods/rollout/rollout-probes.ts',
    'return new ProbeFiles([presentVersion, live])',
    'return new ProbeFiles([presentVersion])',
    ownTest('static-pods/rollout/rollout-mirror-pod'),
  ),
  mutation(
    'rollout: what a kill has staged of the state stays',
    rollout,
    '    await tidyState(manifestDirectory, disk)\n',
    '',
    story('rollout, ready'),
  ),
  mutation(
    'rollout: an end that is visible is not made durable',
    rollout,
    'outcome: await closeState(manifestDirectory, found, kept, { disk, log }) }',
    'outcome: {} }',
    story('rollout, ready'),
  ),
  mutation(
    'two trees change places: no fsync',
    'disk/swap-places.ts',
    '    visible()\n    await fsyncAll(fs, [parent, ...ancestors])\n    await probeJournal(fs, parent, namesFor(second))',
    '    visible()',
    story('rollout, ready'),
  ),
  mutation(
    'the tree that was kept: no fsync after its removal',
    'disk/swap-places.ts',
    'if (isOwn(entry)) await remove(fs, parent, entry)\n    await fsyncAll(fs, [parent, ...ancestors])',
    'if (isOwn(entry)) await remove(fs, parent, entry)',
    story('rollout, ready'),
  ),
  mutation(
    'rollout: one mode and one owner for all of the new tree',
    'publish/planned-tree.ts',
    'return own === undefined ? { ...entry, owner } : { ...entry, mode: own.mode, owner: own.owner }',
    'return { ...entry, owner }',
    rolledAttributes,
  ),
  mutation(
    'rollout: the ACLs of the new tree are left out',
    'publish/stage.ts',
    'return this.own === undefined ? kept : withLists(kept, this.own.get(path)?.lists)',
    'return kept',
    rolledAttributes,
  ),
  mutation(
    'rollout: an ACL alone is no difference',
    'disk/operations.ts',
    'changes: all, digest',
    'changes, digest',
    rolledAttributes,
  ),
  mutation(
    'rollout: the labels of the live tree are lost',
    '/src/static-pods/rollout/rollout-tree.ts',
    'inPlaceOf: target, ',
    '',
    rolledAttributes,
  ),
]
