import { execFileSync, spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { scratch, scratchWith } from '../durable/scratch.js'
import { project } from '../project.js'
import { faultOf, type Sbom } from './cyclonedx.js'

const dockerfile = readFileSync(join(project, 'Dockerfile'), 'utf8')
const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
  version: string
  description: string
}

/** The base with its digest, where there is one. */
const pinned = '${BASE}${BASE_DIGEST:+@}${BASE_DIGEST}'

await t.test(
  'the Dockerfile names one base, pinned, as the local build can make it, and the image is made from scratch',
  async (t) => {
    const stages = [...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, name = '']) => name)
    t.same(stages, [pinned, pinned, 'build', 'scratch'])
    const [, base = ''] = /^ARG BASE=(\S+)$/m.exec(dockerfile) ?? []
    t.match(dockerfile, /^ARG BASE_DIGEST=$/m, 'which a release gives')
    const script = readFileSync(join(project, 'test/node/image/build.sh'), 'utf8')
    const [, pattern = ''] = /^form='(.*)'$/m.exec(script) ?? []
    t.match(base, new RegExp(pattern))
    t.match(base, /:24\.\d+\.\d+-/)
    for (const label of [
      'base.name="$BASE"',
      'base.digest="$BASE_DIGEST"',
      'version="$VERSION"',
      'revision="$REVISION"',
      'source="$SOURCE"',
    ])
      t.match(dockerfile, `org.opencontainers.image.${label}`)
  },
)

await t.test('the image has the package’s version and description, and starts without a shell', async (t) => {
  t.match(dockerfile, new RegExp(`^ARG VERSION=${manifest.version.replaceAll('.', '\\.')}$`, 'm'))
  t.match(dockerfile, `description="${manifest.description}"`)
  const final = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  t.notMatch(final, /^RUN /m, 'the last stage runs nothing, so that it is built for other platforms too')
  const [, entry = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(final) ?? []
  t.same(JSON.parse(entry), ['/usr/local/bin/node', '--disable-sigusr1', '/opt/holdfast/bin/holdfast.js'])
  t.match(final, /^ENV PATH=\/usr\/local\/bin MALLOC_ARENA_MAX=1$/m, 'a path for exec, and one heap for all threads')
})

/** A script and all scripts that it imports. */
function imported(path: string): string[] {
  const text = readFileSync(join(project, path), 'utf8')
  return [
    path,
    ...[...text.matchAll(/from '\.\/([^']+)'/g)].flatMap(([, name]) => imported(join('scripts', name ?? ''))),
  ]
}

await t.test('the build context has the needed files alone', async (t) => {
  const lines = readFileSync(join(project, '.dockerignore'), 'utf8').split('\n')
  t.ok(lines.includes('*'))
  const seen = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  for (const path of seen) t.ok(existsSync(join(project, path)), path)
  for (const needed of imported('scripts/program.mjs')) t.ok(seen.includes(needed), needed)
  t.ok(seen.includes('scripts/program'), 'what takes the place of koffi’s loader')
  for (const needed of [
    'scripts/image',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'LICENSE',
    'bin',
    'native',
    'src',
    'torture',
  ]) {
    t.ok(seen.includes(needed), needed)
  }
})

await t.test('the bundle is the program', (t) => {
  const [directory, bundle] = scratchWith(t, 'bundle')
  const args = [bundle, join(project, 'node_modules'), 'with-node']
  execFileSync(join(project, 'scripts/bundle.sh'), args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const program = join(bundle, 'bin/holdfast.js')
  const run = (...args: string[]): string => {
    const options = { encoding: 'utf8', cwd: directory, env: { PATH: process.env.PATH } } as const
    return execFileSync(process.execPath, [program, ...args], { ...options, stdio: 'pipe' })
  }

  void t.test('for one platform, with nothing that only development needs', async (t) => {
    const files = readdirSync(bundle, { recursive: true, encoding: 'utf8' })
    t.equal(files.filter((file) => file.endsWith('.node')).length, 1)
    t.same(
      files.filter((file) => /\.(ts|map)$|\.d\.ts$|(^|\/)\.bin\//.test(file)),
      [],
    )
    t.same(readdirSync(join(bundle, 'node_modules')), ['@koromix', 'koffi'])
    for (const name of ['holdfast', 'koffi', 'commander', 'pino', 'yaml']) {
      t.ok(files.includes(`licenses/${name}`), `the licence of ${name}`)
    }
  })

  void t.test('its bill of materials is CycloneDX, and names koffi’s binary of this platform', async (t) => {
    const sbom = sbomIn(join(bundle, 'licenses'))
    t.equal(faultOf(sbom), undefined)
    t.equal(sbom.metadata.component.purl, `pkg:npm/holdfast@${manifest.version}`)
    const names = sbom.components.map(({ purl }) => purl.replace(/@[^@]*$/, ''))
    for (const name of ['koffi', `%40koromix/koffi-linux-${process.arch}`, 'commander', 'pino', 'yaml'])
      t.ok(names.includes(`pkg:npm/${name}`), name)
    t.equal(names.filter((name) => name.includes('%40koromix')).length, 1)
    for (const { name, version } of sbom.components.filter(({ name }) => name.startsWith('koffi'))) {
      const place = name === 'koffi' ? 'koffi' : `@koromix/${name}`
      const installed = readFileSync(join(bundle, 'node_modules', place, 'package.json'), 'utf8')
      t.equal((JSON.parse(installed) as { version: string }).version, version, name)
    }
    const [first, ...rest] = sbom.components
    t.match(faultOf({ ...sbom, components: rest }), /leads to no component/)
    t.match(faultOf({ ...sbom, components: [{ ...first, hashes: undefined }, ...rest] }), /CycloneDX requires/)
    t.match(faultOf({ ...sbom, serialNumber: '' }), /unknown/)
  })

  void t.test('its bill of materials names Node and what Node is made of, and the image’s is made so', (t) => {
    t.match(dockerfile, /^RUN scripts\/bundle\.sh \S+ \S+ with-node /m)
    const sbom = sbomIn(join(bundle, 'licenses'))
    const found = new Map(sbom.components.map((one) => [one['bom-ref'].replace('node/', ''), one]))
    const { modules, napi, unicode, ...parts } = process.versions as Record<string, string | undefined>
    t.ok(modules && napi && unicode, 'numbers that name no part')
    for (const [name, version] of Object.entries(parts)) t.equal(found.get(name)?.version, version, name)
    for (const name of ['modules', 'napi', 'unicode']) t.notOk(found.has(name), name)
    t.equal(found.get('node')?.purl, `pkg:generic/node@${process.versions.node}`)
    t.equal(
      found.get('openssl')?.cpe,
      `cpe:2.3:a:openssl:openssl:${process.versions.openssl.replace(/[^\d.].*/, '')}:*:*:*:*:*:*:*`,
    )
    t.end()
  })

  const textOf = (name: string): string => readFileSync(join(bundle, 'dist/src/cli', name), 'utf8')

  /** The parts that are in one file, by their names. */
  function partsOf(text: string): Map<string, string> {
    const parts = text.split(/^"([\w-]+\.cjs)":\(function\(exports,module\)\{$/m).slice(1)
    return new Map(parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1] ?? '']] : [])))
  }

  void t.test('what each command loads is in one file, what replace and write load in another', async (t) => {
    const files = readdirSync(join(bundle, 'dist/src/cli'))
    t.ok(files.length > 20, `${files.length} files`)
    const partsIn = (file: string): string[] =>
      [...partsOf(textOf(file)).keys()].map((name) => name.replace(/-\w+\.cjs$/, ''))
    const [always, packed] = [partsIn('main.cjs'), partsIn('publish.cjs')]
    for (const name of ['replace', 'write', 'publishing', 'read-tree', 'read-file']) {
      t.ok(packed.includes(name), name)
      t.notOk(always.includes(name), `${name} is not read by whoever asks for the version`)
    }
    for (const name of ['agent', 'sync', 'check', 'durable', 'install']) {
      t.notOk(packed.includes(name), `${name} is not read by whoever replaces a directory`)
      t.ok(
        files.some((file) => file.startsWith(`${name}-`)),
        name,
      )
    }
    // Bytes do not depend on the load of the machine, as the time that Node takes to read them does. Every command has the global flags.
    const sizeOf = (file: string): number => statSync(join(bundle, 'dist/src/cli', file)).size
    t.ok(sizeOf('main.cjs') <= 136_500, `${sizeOf('main.cjs')} bytes for every command`)
    t.ok(sizeOf('publish.cjs') <= 312_000, `${sizeOf('publish.cjs')} bytes to publish`)
  })

  void t.test('replace starts no loader of ES modules, and reads no file of the program but these', async (t) => {
    mkdirSync(join(directory, 'read'))
    writeFileSync(join(directory, 'read/file'), 'content')
    const hook = join(directory, 'loaded.cjs')
    writeFileSync(
      hook,
      `process.on('exit', () => require('fs').writeSync(2, JSON.stringify({
        files: Object.keys(require.cache).filter((path) => path.startsWith(${JSON.stringify(bundle)})),
        modules: process.moduleLoadList.map((name) => name.replace('NativeModule ', '')),
      })))`,
    )
    const loads = (...command: string[]): { files: string[]; modules: string[] } => {
      // What goes to /dev/null, as in many a script, asks for no terminal.
      const { stderr } = spawnSync(process.execPath, ['--require', hook, ...command], {
        cwd: directory,
        encoding: 'utf8',
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      return JSON.parse(stderr) as { files: string[]; modules: string[] }
    }
    const { files: loaded, modules } = loads(program, 'replace', 'of-read', '--from', 'read', '--log-level', 'error')
    t.same(
      loaded.map((path) => path.slice(bundle.length + 1)).filter((path) => !path.startsWith('node_modules/')),
      ['bin/holdfast.js', 'bin/prepare.js', 'dist/src/cli/main.cjs', 'dist/src/cli/publish.cjs'],
    )
    t.ok(modules.includes('crypto'), 'Node lists its own modules')
    // Each takes half a millisecond to two, of the fifty that a whole replace takes.
    const heavy = ['child_process', 'fs/promises', 'module', 'net', 'os', 'perf_hooks', 'timers/promises', 'tty', 'vm']
    const bare = loads('--eval', '').modules
    t.same(
      modules.filter((name) => heavy.includes(name) && !bare.includes(name)),
      [],
      'none of these of Node’s own modules',
    )
    t.matchOnly(
      loaded.filter((path) => path.includes('node_modules')),
      [/koffi-linux-\w+\/linux_\w+\/koffi\.node$/],
      'koffi by its binary, not by its loader',
    )
  })

  void t.test('where its binary is not where it should be, koffi finds it itself', async (t) => {
    const moved = join(directory, 'moved')
    cpSync(bundle, moved, { recursive: true })
    const [platform = ''] = readdirSync(join(moved, 'node_modules/@koromix'))
    mkdirSync(join(moved, 'node_modules/koffi/node_modules'))
    renameSync(join(moved, 'node_modules/@koromix'), join(moved, 'node_modules/koffi/node_modules/@koromix'))
    t.ok(existsSync(join(moved, 'node_modules/koffi/node_modules/@koromix', platform)))
    mkdirSync(join(directory, 'other'))
    writeFileSync(join(directory, 'other/file'), 'content')
    const command = [join(moved, 'bin/holdfast.js'), 'replace', 'elsewhere', '--from', 'other']
    t.match(execFileSync(process.execPath, command, { cwd: directory, encoding: 'utf8', stdio: 'pipe' }), /^created /)
  })

  const holding = (text: string): string[] =>
    readdirSync(join(bundle, 'dist/src/cli')).filter((name) =>
      readFileSync(join(bundle, 'dist/src/cli', name), 'utf8').includes(text),
    )

  void t.test('pino is loaded for a line of the log, and for nothing else', async (t) => {
    t.same(holding('thread-stream'), ['pino.cjs'])
    const preload = join(directory, 'preload.cjs')
    const answer = "Object.keys(require.cache).some((path) => path.endsWith('/pino.cjs'))"
    writeFileSync(preload, `process.on('exit', () => require('fs').writeFileSync('loaded', String(${answer})))`)
    const loads = (...args: string[]) => {
      const command = ['--require', preload, program, ...args]
      const { stderr } = spawnSync(process.execPath, command, { cwd: directory, encoding: 'utf8', input: 'content' })
      return { logged: stderr !== '', loaded: readFileSync(join(directory, 'loaded'), 'utf8') === 'true' }
    }
    const neither = { logged: false, loaded: false }
    t.same(loads('--version'), neither)
    mkdirSync(join(directory, 'from'))
    writeFileSync(join(directory, 'from/file'), 'content')
    const replace = ['replace', 'target', '--from', 'from']
    t.same(loads(...replace, '--mode', '0700', '--log-level', 'error'), neither)
    t.same(loads(...replace, '--log-level', 'error'), neither, 'that the mode changes is a warning')
    chmodSync(join(directory, 'target'), 0o700)
    t.same(loads(...replace), { logged: true, loaded: true })
    // Says something where durability is not proven on the test's file system.
    const write = loads('write', 'file')
    t.equal(write.loaded, write.logged)
  })

  void t.test('where no file can be opened, a line is logged without pino, and the next one with it', async (t) => {
    t.same(holding('"./pino.cjs"'), ['main.cjs'])
    const [logger = ''] = [...partsOf(textOf('main.cjs'))].find(([, text]) => text.includes('"./pino.cjs"')) ?? []
    const script = `
      const { createRequire } = await import('node:module')
      const { part } = createRequire('/')(${JSON.stringify(join(bundle, 'dist/src/cli/main.cjs'))})
      const { createLogger } = part(${JSON.stringify(logger)})
      const { closeSync, openSync } = await import('node:fs')
      const log = createLogger({ stderr: process.stderr, env: {} }, { logLevel: 'info', logFormat: 'json' })
      const open = []
      try { for (;;) open.push(openSync('/dev/null')) } catch (error) { if (error.code !== 'EMFILE') throw error }
      log.info({ inode: 1n }, 'logged')
      for (const descriptor of open) closeSync(descriptor)
      log.info({ inode: 1n }, 'logged')`
    const limited = ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath]
    const { stderr } = spawnSync('/bin/sh', [...limited, '--input-type=module', '-e', script], { encoding: 'utf8' })
    const inodes = stderr.split('\n').map((line) => /"inode":([^,]+)/.exec(line)?.[1])
    t.same(inodes, ['"1"', '1', undefined], 'pino alone writes it as a number')
  })

  void t.test('its commands work', async (t) => {
    t.equal(run('--version'), `${manifest.version}\n`)
    writeExample(directory)
    const config = ['--config', 'holdfast.yaml']
    t.match(run('sync', ...config), /^created {2}\S+\/node\/tls {2}sha256:/)
    t.equal(readFileSync(join(directory, 'node/tls/pair.pem'), 'utf8'), 'keycertificate')
    t.match(run('verify', ...config), /node\/tls +ok/)
    t.match(run('status', ...config), /node\/tls +True/)
    t.match(run('rbac', ...config), /source\.files/)
    mkdirSync(join(directory, 'manifests'))
    t.match(run('install', 'pod.yaml', '--pod-manifest-dir', 'manifests'), /pod\.yaml/)
    t.same(
      readdirSync(join(directory, 'manifests')).filter((name) => !name.startsWith('.')),
      ['pod.yaml'],
    )
  })

  void t.test('it finds the same faults in a configuration', async (t) => {
    const broken = join(directory, 'broken.yaml')
    writeFileSync(broken, 'apiVersion: 1\nkind: &a [*a]\nsource: { files: { path: objects }, x: !!binary YQ== }\n')
    const fault = (of: string): string => {
      try {
        execFileSync(process.execPath, [of, 'sync', '--config', broken, '--log-format', 'json'], {
          encoding: 'utf8',
          stdio: 'pipe',
        })
      } catch (error) {
        return (error as { stderr: string }).stderr.replace(/"time":"[^"]*",/g, '')
      }
      throw new Error('it was taken')
    }
    t.equal(fault(program), fault(join(project, 'bin/holdfast.js')))
  })
  t.end()
})

await t.test('the bundle is equal in bytes and modes, whatever path and umask built it', async (t) => {
  const directory = scratch(t)
  const parts = [
    'bin',
    'deploy',
    'src',
    'native',
    'torture',
    'scripts',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'LICENSE',
  ]
  const built = ['022', '077'].map((umask, index) => {
    const [source, out] = [join(directory, 'x'.repeat(index + 1)), join(directory, `out-${umask}`)]
    const copy = `umask ${umask}; mkdir "$1" && cp -r ${parts.join(' ')} "$1" && ln -s "$PWD/node_modules" "$1/node_modules"`
    const script = `${copy} && chmod -R go-rwx "$1/bin" && cd "$1" && scripts/bundle.sh "$2"`
    execFileSync('/bin/sh', ['-c', script, 'sh', source, out], { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] })
    return readdirSync(out, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const { mode } = statSync(join(out, name))
        const isFile = (mode & 0o170000) === 0o100000
        return `${mode.toString(8)} ${name} ${isFile ? hash('sha256', readFileSync(join(out, name))) : ''}`
      })
  })
  t.ok((built[0]?.length ?? 0) > 30)
  t.same(built[0], built[1])
})

await t.test(
  'the packed library: its uncaught error, its bill of materials, and what it says on another system',
  async (t) => {
    const directory = scratch(t)
    const script = pathToFileURL(join(project, 'scripts/program.mjs')).href
    const { bundleProgram } = (await import(script)) as { bundleProgram: (to: object) => Promise<Metafile[]> }
    const licenses = join(directory, 'licenses')
    const metafiles = await bundleProgram({ dist: join(directory, 'dist'), licenses, library: true })
    const library = join(directory, 'dist/src/index.js')

    await t.test(
      'on another system, and without koffi, it loads, and each call says where holdfast runs',
      async (t) => {
        const elsewhere = join(directory, 'elsewhere.mjs')
        writeFileSync(elsewhere, "Object.defineProperty(process, 'platform', { value: 'darwin' })")
        const caller = join(directory, 'calls.mjs')
        writeFileSync(
          caller,
          `import * as holdfast from ${JSON.stringify(library)}
       const { DurableWriteError, ...calls } = holdfast
       const file = ${JSON.stringify(join(directory, 'target'))}
       const given = { exchange: [file, file], replaceDirectories: [[{ target: file, files: {} }]], replaceDirectory: [file, { files: {} }], replaceFile: [file, ''] }
       for (const [name, call] of Object.entries(calls))
         await call(...(given[name] ?? [file])).then(() => console.log(name, 'worked'), ({ message }) => console.log(name, message))
       console.log(typeof DurableWriteError)`,
        )
        const { stdout, stderr } = spawnSync(process.execPath, ['--import', elsewhere, caller], { encoding: 'utf8' })
        const calls = [
          'exchange',
          'readPublication',
          'replaceDirectories',
          'replaceDirectory',
          'replaceFile',
          'syncPath',
          'verifyDirectory',
        ]
        const said = calls.map((name) => `${name} holdfast runs on Linux, and this is darwin\n`)
        t.equal(stdout, `${said.join('')}function\n`, stderr)
        t.notOk(existsSync(join(directory, 'target')))
      },
    )

    await t.test('people read its sources in it: each function under its comment', async (t) => {
      const text = readFileSync(library, 'utf8')
      const { sources } = JSON.parse(readFileSync(`${library}.map`, 'utf8')) as { sources: readonly string[] }
      const commented = sources.flatMap((source) => [
        ...readFileSync(join(project, source.slice(source.search(/(?:src|native|scripts)\//))), 'utf8').matchAll(
          /^(\/\*\*(?:[^*]|\*(?!\/))*\*\/\n)export ((?:async )?function \w+)(?=\()/gm,
        ),
      ])
      // Of two of one name, one has a number.
      const all = text.replaceAll(/(function \w+)\$\d+\(/g, '$1(')
      const kept = commented.filter(([, , head = '']) => all.includes(`\n${head}(`))
      t.ok(kept.length > 100, `${kept.length} of ${commented.length} functions`)
      const bare = kept.filter(([, comment = '', head = '']) => !all.includes(`${comment}${head}(`))
      t.same(
        bare.map(([, , head]) => head),
        [],
        'none without it',
      )
      t.notMatch(text, /^import (?!.* from 'node:)/m, 'it begins with modules of Node alone')
    })

    await t.test('an error that its caller does not catch prints lines that people can read', async (t) => {
      symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'))
      const caller = join(directory, 'caller.mjs')
      const call = "await replaceDirectory('/proc/none/x', { files: { a: 'b' } })"
      writeFileSync(caller, `import { replaceDirectory } from ${JSON.stringify(library)}\n${call}\n`)
      const { stderr } = spawnSync(process.execPath, [caller], { encoding: 'utf8' })
      t.match(stderr, /DurableWriteError: .*\/proc\/none/)
      t.match(stderr, /index\.js:\d+\n/)
      t.ok(Buffer.byteLength(stderr) < 4096, `${Buffer.byteLength(stderr)} bytes: ${stderr.slice(0, 200)}`)
    })

    await t.test('the bill of materials names what esbuild bundled', async (t) => {
      const { writeSbom } = (await import(pathToFileURL(join(project, 'scripts/sbom.mjs')).href)) as {
        writeSbom: (metafiles: readonly Metafile[], licenses: string, also: object) => void
      }
      writeSbom(metafiles, licenses, {})
      const packages = bundledPackages(metafiles)
      t.ok(packages.length > 10, packages.join())
      t.same(
        sbomIn(licenses)
          .components.map(({ purl }) => decodeURIComponent(purl.replace('pkg:npm/', '')))
          .sort(),
        packages,
        'each package of which the bundle has a byte, and no other',
      )
    })
  },
)

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { readonly bytesInOutput: number }>> }>
  >
}

function sbomIn(licenses: string): Sbom {
  return JSON.parse(readFileSync(join(licenses, 'holdfast.cdx.json'), 'utf8')) as Sbom
}

/** Name and version of each package that a byte of the outputs came from, as its own package.json says them. */
function bundledPackages(metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap((output) => Object.entries(output.inputs)),
  )
  const used = inputs.filter(([path, { bytesInOutput }]) => bytesInOutput > 0 && path.startsWith('node_modules/'))
  const named = used.map(([path]) => {
    let directory = dirname(join(project, path))
    // A package may have files without a name, which say how their directory is read.
    for (;;) {
      const file = join(directory, 'package.json')
      const { name, version } = (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}) as Record<
        string,
        string
      >
      if (name !== undefined && version !== undefined) return `${name}@${version}`
      directory = dirname(directory)
    }
  })
  return [...new Set(named)].sort()
}

function writeExample(directory: string): void {
  mkdirSync(join(directory, 'objects'))
  const data = { 'tls.crt': 'certificate', 'tls.key': 'key' }
  const encoded = Object.entries(data).map(([key, text]) => `  ${key}: ${Buffer.from(text).toString('base64')}`)
  writeFileSync(
    join(directory, 'objects/tls.yaml'),
    ['apiVersion: v1', 'kind: Secret', 'metadata: { name: tls }', 'data:', ...encoded, ''].join('\n'),
  )
  writeFileSync(
    join(directory, 'holdfast.yaml'),
    `apiVersion: holdfast.dev/v1alpha1
kind: AgentConfiguration
stateDirectory: state
source: { files: { path: objects } }
directories:
  - path: node/tls
    contents:
      - secret: tls
      - combine: pair.pem
        from: [{ secret: tls, key: tls.key }, { secret: tls, key: tls.crt }]
    beforePublish: [{ exec: [grep, -q, key, '{dir}/pair.pem'] }]
`,
  )
  writeFileSync(
    join(directory, 'pod.yaml'),
    `apiVersion: v1
kind: Pod
metadata: { name: pod }
spec: { containers: [{ name: one, image: one }] }
`,
  )
}
