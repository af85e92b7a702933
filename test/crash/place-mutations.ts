import { type Mutation, mutation, ownTest, ownTestOfRoot } from './mutation.js'

/** Where names, mounts and copies around the target move. */
export const places: readonly Mutation[] = [
  mutation(
    'ancestors are synced only the first time',
    'publication.ts',
    'const ancestors = await this.site.ancestors()',
    'const ancestors = this.found?.current?.trusted === true ? [] : await this.site.ancestors()',
    ownTest('durable/place'),
  ),
  mutation(
    'a record is believed wherever it stands',
    'place.ts',
    'return isSame(place.parent, found.parent) && isSame(place.target, found.target)',
    'return true',
    ownTest('durable/place'),
  ),
  mutation(
    'a record is believed for any target in its parent',
    'place.ts',
    ' && isSame(place.target, found.target)',
    '',
    ownTest('durable/place'),
  ),
  mutation(
    'a moved directory is unchanged at once',
    'publication.ts',
    'if (this.found?.moved) await this.#recordPlace()',
    '',
    ownTest('durable/place'),
  ),
  mutation(
    'the path is not found again',
    'publish.ts',
    "    await each(going(), 'could not find again', (publication) => publication.site.confirm(found))\n",
    '',
    ownTest('durable/place'),
  ),
  mutation(
    'mounts below the target are not looked for',
    'refusals.ts',
    '    await refuseMountsBelow(fs, path, opened)\n',
    '',
    ownTestOfRoot('durable/mounts-below'),
  ),
  mutation(
    'mounts in a leftover are not looked for',
    'remove.ts',
    '    await refuseMounted(fs, directory)\n',
    '',
    ownTestOfRoot('durable/mounts-below'),
  ),
  mutation(
    'a removed lock is as good as another',
    'lock.ts',
    '  if ((await scope.fs.attributes(file)).links > 0) return true\n  await scope.close(file)\n  return false',
    '  return true',
    ownTest('durable/names-and-limits'),
  ),
  mutation(
    'a record of a newer version is damaged',
    'record-files.ts',
    'else if (isOfNewerVersion(text)) newer.push(sequence)\n',
    '\n',
    ownTest('durable/names-and-limits'),
  ),
  mutation(
    'the old content is removed, whoever changed it',
    'directory-publication.ts',
    '    if (this.#isForeign) return this.#quarantineOld()\n',
    '',
    ownTest('durable/added-meanwhile'),
  ),
  mutation(
    'what changed in the old content is not looked at',
    'old-content.ts',
    'found.type !== type || found.changed !== changed',
    'found.type !== type',
    ownTest('durable/added-meanwhile'),
  ),
  mutation(
    'what a predecessor was removing is removed, whatever it holds',
    'quarantine.ts',
    'if (isOwn && !(isOld && (await holdsMore(area, name, records)))) {',
    'if (isOwn) {',
    ownTest('durable/added-meanwhile'),
  ),
]
