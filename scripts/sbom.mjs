/** What a bundle of the program is made of, as a bill of materials of CycloneDX: the same bytes for the same parts. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const project = join(import.meta.dirname, '..')
const read = (name) => JSON.parse(readFileSync(join(project, name), 'utf8'))

/** The places of the packages of which esbuild's outputs have a byte, as package-lock.json names them. */
export function packagesIn(metafiles) {
  const outputs = metafiles.flatMap(({ outputs }) => Object.values(outputs))
  const paths = outputs.flatMap(({ inputs }) => Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0))
  // Where node_modules is a link, esbuild names what it leads to.
  const places = paths.map(
    (path) => /(?<![^/])node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0],
  )
  return [...new Set(places.filter((place) => place !== undefined))].sort()
}

const nameOf = (place) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`
const licensesOf = (license) => [
  / (?:OR|AND|WITH) /.test(license) ? { expression: license } : { license: { id: license } },
]

function componentOf(place, { version, license, integrity }, scope) {
  const [, group, name] = /^(?:(@[^/]+)\/)?(.*)$/.exec(nameOf(place))
  const [algorithm, content] = integrity.split('-')
  if (algorithm !== 'sha512') throw new Error(`package-lock.json has ${algorithm} of ${place}, and should have sha512`)
  return {
    type: 'library',
    'bom-ref': purlOf(nameOf(place), version),
    ...(group && { group }),
    name,
    version,
    scope,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(content, 'base64').toString('hex') }],
    licenses: licensesOf(license),
    purl: purlOf(nameOf(place), version),
  }
}

/** Numbers of interfaces and of a standard: process.versions has them beside what Node is made of. */
const numbersOnly = ['modules', 'napi', 'unicode']

/** How lists of vulnerabilities name what Node is made of, where they know it. */
const vendors = {
  node: 'nodejs:node.js',
  ares: 'c-ares:c-ares',
  brotli: 'google:brotli',
  llhttp: 'llhttp:llhttp',
  nghttp2: 'nghttp2:nghttp2',
  openssl: 'openssl:openssl',
  sqlite: 'sqlite:sqlite',
  undici: 'nodejs:undici',
  uv: 'libuv:libuv',
  zlib: 'zlib:zlib',
}

/** Node and what it is made of, Node first. @param versions as process.versions has them */
function nodeComponents(versions) {
  const names = Object.keys(versions).filter((name) => !numbersOnly.includes(name))
  const parts = names.filter((name) => name !== 'node').sort()
  return ['node', ...parts].map((name) => ({
    ...(name === 'node' ? { type: 'platform', licenses: licensesOf('MIT') } : { type: 'library' }),
    'bom-ref': name === 'node' ? 'node' : `node/${name}`,
    name,
    version: versions[name],
    ...(vendors[name] && { cpe: `cpe:2.3:a:${vendors[name]}:${cpeOf(versions[name])}:*:*:*:*:*:*:*` }),
    purl: `pkg:generic/${name}@${encodeURIComponent(versions[name])}`,
  }))
}

/** The release, without a build's own suffix, as lists of vulnerabilities have it. */
const cpeOf = (version) => /^[\d.]+/.exec(version)[0]

/**
 * @param {readonly string[]} bundled places of packages, as `packagesIn` answers them
 * @param {{ beside?: readonly string[], optional?: readonly string[], node?: Readonly<Record<string, string>> }} also `beside`: packages that are
 * not in the bundle, and that it loads; `optional`: those of which a machine needs one; `node`: the versions of a Node that is in it, too, and of its
 * parts, as process.versions has them
 */
export function sbomOf(bundled, { beside = [], optional = [], node } = {}) {
  const { name, version, license, description } = read('package.json')
  const { packages } = read('package-lock.json')
  const places = [...bundled, ...[...beside, ...optional].map((one) => `node_modules/${one}`)].sort()
  const scopeOf = (place) => (optional.includes(nameOf(place)) ? 'optional' : 'required')
  const refOf = new Map(places.map((place) => [nameOf(place), purlOf(nameOf(place), packages[place].version)]))
  const needs = (place) => {
    const { dependencies = {}, optionalDependencies = {} } = packages[place]
    const names = Object.keys({ ...dependencies, ...optionalDependencies })
    return names.flatMap((one) => refOf.get(one) ?? []).sort()
  }
  const needed = new Set(places.flatMap(needs))
  const root = purlOf(name, version)
  const [platform, ...parts] = node === undefined ? [] : nodeComponents(node)
  const direct = [...refOf.values()].filter((ref) => !needed.has(ref))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': root,
        name,
        version,
        description,
        licenses: licensesOf(license),
        purl: root,
      },
    },
    components: [
      ...places.map((place) => componentOf(place, packages[place], scopeOf(place))),
      ...(platform ? [platform, ...parts] : []),
    ],
    dependencies: [
      { ref: root, dependsOn: [...direct, ...(platform ? ['node'] : [])] },
      ...places.map((place) => ({ ref: refOf.get(nameOf(place)), dependsOn: needs(place) })),
      ...(platform ? [{ ref: 'node', dependsOn: parts.map((part) => part['bom-ref']) }] : []),
    ],
  }
}

/** Writes it beside the licences; @param `also` as of `sbomOf`. */
export function writeSbom(metafiles, licenses, also) {
  const sbom = sbomOf(packagesIn(metafiles), also)
  writeFileSync(join(licenses, 'holdfast.cdx.json'), `${JSON.stringify(sbom, undefined, 2)}\n`)
}
