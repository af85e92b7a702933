import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../durable/scratch.js'
import { project } from '../project.js'

const dockerfile = readFileSync(join(project, 'Dockerfile'), 'utf8')
const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
  version: string
  description: string
}

await t.test('the Dockerfile names one base, pinned, as the local build can make it', (t) => {
  const bases = [...dockerfile.matchAll(/^FROM (?:--platform=\S+ )?(\S+)/gm)].map(([, name]) => name)
  t.equal(bases.length, 2)
  t.equal(bases[0], bases[1])
  const script = readFileSync(join(project, 'test/node/image/build.sh'), 'utf8')
  const [, pattern = ''] = /^form='(.*)'$/m.exec(script) ?? []
  t.match(bases[1], new RegExp(pattern))
  t.match(bases[1], /:24\.\d+\.\d+-/)
  t.match(dockerfile, `org.opencontainers.image.base.name="${bases[1]}"`)
  t.end()
})

await t.test('the image has the package’s version and description, and starts without a shell', (t) => {
  t.match(dockerfile, new RegExp(`^ARG VERSION=${manifest.version.replaceAll('.', '\\.')}$`, 'm'))
  t.match(dockerfile, `description="${manifest.description}"`)
  const final = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  t.notMatch(final, /^RUN /m, 'the last stage runs nothing, so that it is built for other platforms too')
  const [, entry = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(final) ?? []
  t.same(JSON.parse(entry), ['/usr/local/bin/node', '/opt/holdfast/bin/holdfast.js'])
  t.match(final, /^ENV MALLOC_ARENA_MAX=1$/m, 'one heap for all threads')
  t.end()
})

await t.test('the build sees what it needs, and nothing else', (t) => {
  const lines = readFileSync(join(project, '.dockerignore'), 'utf8').split('\n')
  t.ok(lines.includes('*'))
  const seen = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  for (const path of seen) t.ok(existsSync(join(project, path)), path)
  for (const needed of ['package.json', 'package-lock.json', 'tsconfig.json', 'LICENSE', 'bin', 'native', 'src']) {
    t.ok(seen.includes(needed), needed)
  }
  t.end()
})

await t.test('the bundle is the program', (t) => {
  const directory = scratch(t)
  const bundle = join(directory, 'bundle')
  execFileSync(join(project, 'scripts/bundle.sh'), [bundle], { stdio: ['ignore', 'ignore', 'inherit'] })
  const program = join(bundle, 'bin/holdfast.js')
  const run = (...args: string[]): string => {
    const options = { encoding: 'utf8', cwd: directory, env: { PATH: process.env.PATH } } as const
    return execFileSync(process.execPath, [program, ...args], { ...options, stdio: 'pipe' })
  }

  void t.test('for one platform, with nothing that only development needs', (t) => {
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
    t.end()
  })

  /** A file of the program, and all that it cannot start without. */
  function loadedWith(name: string, known = new Set<string>()): ReadonlySet<string> {
    if (known.has(name)) return known
    known.add(name)
    const text = readFileSync(join(bundle, 'dist/src/cli', name), 'utf8')
    for (const [, other = ''] of text.matchAll(/(?:from|import) ?"\.\/([^"]+)"/g)) loadedWith(other, known)
    return known
  }

  function sizeOf(names: ReadonlySet<string>): number {
    return [...names].reduce((sum, name) => sum + statSync(join(bundle, 'dist/src/cli', name)).size, 0)
  }

  void t.test('a command loads only its own part', (t) => {
    const parts = readdirSync(join(bundle, 'dist/src/cli'))
    t.ok(parts.length > 20, `${parts.length} files`)
    const main = readFileSync(join(bundle, 'dist/src/cli/main.js'), 'utf8')
    t.notMatch(main, /from "koffi"/, 'what explains a command needs no libc')
    // Bytes do not depend on the load of the machine, as the time that Node takes to read them does.
    const always = loadedWith('main.js')
    const replace = loadedWith(parts.find((name) => /^replace-\w+\.js$/.test(name)) ?? '', new Set(always))
    t.ok(sizeOf(always) <= 170_000, `${sizeOf(always)} bytes for every command`)
    t.ok(sizeOf(replace) <= 205_000, `${sizeOf(replace)} bytes with the flags of replace`)
    t.end()
  })

  const holding = (text: string): string[] =>
    readdirSync(join(bundle, 'dist/src/cli')).filter((name) =>
      readFileSync(join(bundle, 'dist/src/cli', name), 'utf8').includes(text),
    )

  void t.test('pino is loaded for a line of the log, and for nothing else', (t) => {
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
    t.end()
  })

  void t.test('where no file can be opened, a line is logged without pino, and the next one with it', (t) => {
    const [logger = '', ...others] = holding('"./pino.cjs"')
    t.same(others, [])
    const script = `
      const { createLogger } = await import(${JSON.stringify(join(bundle, 'dist/src/cli', logger))})
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
    t.end()
  })

  void t.test('its commands work', (t) => {
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
    t.end()
  })

  void t.test('it finds the same faults in a configuration', (t) => {
    const broken = join(directory, 'broken.yaml')
    writeFileSync(broken, 'apiVersion: 1\nkind: &a [*a]\nsource: { files: { path: objects }, x: !!binary YQ== }\n')
    const fault = (of: string): string => {
      try {
        execFileSync(process.execPath, [of, 'sync', '--config', broken], { encoding: 'utf8', stdio: 'pipe' })
      } catch (error) {
        return (error as { stderr: string }).stderr.replace(/"time":"[^"]*",/g, '')
      }
      throw new Error('it was taken')
    }
    t.equal(fault(program), fault(join(project, 'bin/holdfast.js')))
    t.end()
  })
  t.end()
})

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
