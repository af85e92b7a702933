/**
 * Installs the programs that run the peers, each with its own tool and from its own lock file, into a cache outside of the tree. A machine
 * that lacks a tool, or cannot reach its registry, gets the other rows.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Toolchain = 'own' | 'npm' | 'go' | 'rust' | 'library-go' | 'git-sync' | 'k8s-sidecar'

/** Sources of the drivers, which are not compiled with the rest. */
const sources = fileURLToPath(new URL('../../../bench/peers/', import.meta.url))
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'holdfast/peers')

interface Installation {
  /** Directories of `sources` that decide the installation. */
  readonly from: readonly string[]
  /** Further versions that decide it. */
  readonly pinned?: string
  /** Installs into an empty directory. */
  readonly install: (directory: string) => void
  readonly publish: (directory: string) => string[]
}

const commits = {
  'library-go': { url: 'https://github.com/openshift/library-go', commit: '93ac9206ae34e602d6acf346826e3e99c22b1787' },
  'git-sync': { url: 'https://github.com/kubernetes/git-sync', commit: 'd9d12f7e9839266ceb1e2719488c1b7112316cb3' },
  'k8s-sidecar': { url: 'https://github.com/kiwigrid/k8s-sidecar', commit: 'a1119e0601079eb167d147dcdc2e82bd59ee35b9' },
} as const

const ownDriver = fileURLToPath(new URL('own-driver.js', import.meta.url))

const installations = {
  own: {
    from: ['shell'],
    install: () => undefined,
    publish: () => [process.execPath, ownDriver, join(sources, 'shell/replace.sh')],
  },
  npm: {
    from: ['npm'],
    install: (directory) => {
      cpSync(join(sources, 'npm'), directory, { recursive: true })
      run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], directory)
    },
    publish: (directory) => [process.execPath, join(directory, 'publish.mjs')],
  },
  go: {
    from: ['go'],
    install: (directory) => {
      cpSync(join(sources, 'go'), directory, { recursive: true })
      run(go(), ['build', '-trimpath', '-o', join(directory, 'bin/'), './publish', './inform'], directory)
    },
    publish: (directory) => [join(directory, 'bin/publish')],
  },
  rust: {
    from: ['rust'],
    install: (directory) => {
      cpSync(join(sources, 'rust'), directory, { recursive: true })
      run('cargo', ['build', '--release', '--locked', '--quiet'], directory)
    },
    publish: (directory) => [join(directory, 'target/release/publish')],
  },
  'library-go': {
    from: ['library-go', 'go/publish'],
    pinned: commits['library-go'].commit,
    // Its atomic directory is an internal package: the program is laid into the checkout, which brings its own dependencies.
    install: (directory) => {
      const checkout = clone('library-go', directory)
      const overlay = join(directory, 'overlay.json')
      const within = './pkg/operator/staticpod/publish'
      const program = ['library-go/main.go', 'go/publish/orders.go']
      const Replace = Object.fromEntries(
        program.map((path) => [join(checkout, within, basename(path)), join(sources, path)]),
      )
      writeFileSync(overlay, JSON.stringify({ Replace }))
      run(
        go(),
        ['build', '-trimpath', '-mod=vendor', '-overlay', overlay, '-o', join(directory, 'publish'), within],
        checkout,
      )
      rmSync(checkout, { recursive: true })
    },
    publish: (directory) => [join(directory, 'publish')],
  },
  'git-sync': {
    from: [],
    pinned: commits['git-sync'].commit,
    install: (directory) => {
      const checkout = clone('git-sync', directory)
      run(go(), ['build', '-trimpath', '-mod=vendor', '-o', join(directory, 'git-sync'), '.'], checkout)
      rmSync(checkout, { recursive: true })
    },
    publish: (directory) => [process.execPath, ownDriver, join(directory, 'git-sync')],
  },
  'k8s-sidecar': {
    from: ['k8s-sidecar'],
    pinned: commits['k8s-sidecar'].commit,
    install: (directory) => {
      clone('k8s-sidecar', directory)
      run(python(), ['-m', 'venv', 'python'], directory)
      const pip = join(directory, 'python/bin/pip')
      run(pip, ['install', '--quiet', '--no-deps', '-r', join(sources, 'k8s-sidecar/requirements.txt')], directory)
    },
    publish: (directory) => [
      join(directory, 'python/bin/python'),
      join(sources, 'k8s-sidecar/publish.py'),
      join(directory, 'checkout/src'),
    ],
  },
} satisfies Record<Toolchain, Installation>

/** Directory of an installed toolchain, which it installs where the cache has none. @throws Error that says why it cannot be had */
export function installed(toolchain: Toolchain): string {
  const { from, install, pinned = '' }: Installation = installations[toolchain]
  const key = createHash('sha256').update(pinned)
  for (const path of from.flatMap(filesBelow)) key.update(path).update(readFileSync(join(sources, path)))
  // Where it stays: a virtual environment of Python knows its own path.
  const directory = join(cache, `${toolchain}-${key.digest('hex').slice(0, 16)}`)
  const complete = join(directory, '.complete')
  if (existsSync(complete)) return directory
  console.error(`installing ${toolchain} into ${directory} (once)`)
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  install(directory)
  writeFileSync(complete, '')
  return directory
}

/** The command of its driver; installs it first. */
export function publisher(toolchain: Toolchain): string[] {
  return installations[toolchain].publish(installed(toolchain))
}

function filesBelow(directory: string): string[] {
  const names = readdirSync(join(sources, directory), { recursive: true, encoding: 'utf8' })
  return names
    .map((name) => join(directory, name))
    .filter((path) => statSync(join(sources, path)).isFile())
    .sort()
}

/** The tree of a commit, without its history. `url.<base>.insteadOf` of git's configuration names a mirror. */
function clone(name: keyof typeof commits, directory: string): string {
  const { url, commit } = commits[name]
  const checkout = join(directory, 'checkout')
  mkdirSync(checkout)
  run('git', ['init', '--quiet'], checkout)
  run('git', ['fetch', '--quiet', '--depth', '1', url, commit], checkout)
  run('git', ['checkout', '--quiet', 'FETCH_HEAD'], checkout)
  return checkout
}

const go = (): string => firstThatRuns(['go', '/usr/local/go/bin/go'], 'version', /go1/, 'Go (https://go.dev/dl)')

/** What k8s-sidecar asks for. */
const python = (): string => {
  const names = ['python3', 'python3.14', 'python3.13', 'python3.12']
  const known = [...names, ...namesIn(join(homedir(), '.pyenv/versions')).map((path) => join(path, 'bin/python3'))]
  return firstThatRuns(known, '--version', /^Python 3\.1[2-9]/, 'Python 3.12 or later')
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : []
}

function firstThatRuns(programs: readonly string[], flag: string, answers: RegExp, what: string): string {
  for (const program of programs) {
    try {
      if (answers.test(execFileSync(program, [flag], { encoding: 'utf8', stdio: 'pipe' }).replace('go version ', ''))) {
        return program
      }
    } catch {
      continue
    }
  }
  throw new Error(`it needs ${what}`)
}

/** @throws Error with the last line that the program said */
function run(program: string, args: readonly string[], cwd: string): void {
  try {
    execFileSync(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 28 })
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer }
    const said = stderr?.toString().trim().split('\n').at(-1) ?? ''
    throw new Error(`${program}: ${said === '' ? message : said}`, { cause: error })
  }
}
