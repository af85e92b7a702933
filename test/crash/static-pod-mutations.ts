import { compound, model, type Mutation, mutation, ownTest } from './mutation.js'
import { prunes } from './prune-mutations.js'

const install = '/src/static-pods/install.ts'
const monitor = '/src/static-pods/monitor.ts'
const fallBack = '/src/static-pods/fall-back.ts'
const links = '/src/static-pods/last-known-good.ts'
const rollout = '/src/static-pods/rollout.ts'
const steps = '/src/static-pods/rollout-steps.ts'
const publishDirectories =
  'const directories: InstallLine[] = [...kept, ...(await disk.publishDirectories(requests, signal))]'
const story = (only: string) => model(`static pod: ${only}`)

/** What install, prune, monitor and rollout do to a node. */
export const staticPods: readonly Mutation[] = [
  ...prunes,
  mutation(
    'what a killed installation staged has the name of its own revision',
    '/src/static-pods/install-plan.ts',
    '    family: revisionFamily(pod),\n',
    '',
    ownTest('static-pods/killed-install'),
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
    'operations.ts',
    '      visible()\n      await fsyncAll(this.fs, [parent, ...ancestors])\n      await probeJournal',
    '      visible()\n      await probeJournal',
    story('monitor, ready'),
  ),
  mutation(
    'link: removed before it is made again',
    'operations.ts',
    "await this.fs.rename(parent, staging, parent, name, 'replace')",
    "if (found) await this.fs.removeFile(parent, name)\n        await this.fs.rename(parent, staging, parent, name, 'replace')",
    story('monitor, ready'),
  ),
  mutation(
    'tree: no fsync of its name',
    'operations.ts',
    '[root, place.anchor, ...',
    '[root, ...',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of files',
    'sync-below.ts',
    "if (entry.type === 'file' || entry.type === 'directory') all.push(entry)",
    "if (entry.type === 'directory') all.push(entry)",
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of directories',
    'sync-below.ts',
    "if (entry.type === 'file' || entry.type === 'directory') all.push(entry)",
    "if (entry.type === 'file') all.push(entry)",
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of its own names',
    'operations.ts',
    '[root, place.anchor, ...',
    '[place.anchor, ...',
    story('install of a revision that another program wrote and made live'),
  ),
  mutation(
    'tree: no fsync of ancestors',
    'operations.ts',
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
    '      await recordLastKnownGood(places, revision, disk)\n',
    '',
    story('fallback to the newest older revision'),
  ),
  compound(
    'fallback: the manifest before the link',
    [
      [fallBack, '      await recordLastKnownGood(places, revision, disk)\n', ''],
      [
        fallBack,
        '      await disk.publishFiles([request], undefined)\n',
        '      await disk.publishFiles([request], undefined)\n      await recordLastKnownGood(places, revision, disk)\n',
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
    "    if (tree) await removeKept(tree, disk, log)\n    await writeState(this.directory, { phase: 'ended', outcome, request }, disk, log)",
    "    await writeState(this.directory, { phase: 'ended', outcome, request }, disk, log)\n    if (tree) await removeKept(tree, disk, log)",
    story('rollout, ready'),
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
    '  await writeState(manifestDirectory, { phase: found.phase, outcome: found.outcome, request: found.request }, disk, log)\n',
    '',
    story('rollout, ready'),
  ),
  mutation(
    'two trees change places: no fsync',
    'swap-places.ts',
    '    visible()\n    await fsyncAll(fs, [parent, ...ancestors])\n    await probeJournal(fs, parent, namesFor(second))',
    '    visible()',
    story('rollout, ready'),
  ),
  mutation(
    'the tree that was kept: no fsync after its removal',
    'swap-places.ts',
    'if (isOwn(entry)) await remove(fs, parent, entry)\n    await fsyncAll(fs, [parent, ...ancestors])',
    'if (isOwn(entry)) await remove(fs, parent, entry)',
    story('rollout, ready'),
  ),
]
