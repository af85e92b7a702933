/** Hooks that could not work from here are reported; none is run. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { Bus, managerName, Peer } from '../directories/systemd-manager.js'
import { isRoot, needsRoot, Scene } from './scene.js'

await t.test("check judges a hook's program, pid file and address", async (t) => {
  const scene = new Scene(t)
  const at = (name: string) => scene.path(name)
  const ran = at('ran')
  const script = (name: string, text: string, mode: number) => {
    writeFileSync(at(name), text)
    chmodSync(at(name), mode)
  }
  script('plain', `#!/bin/sh\ntouch ${ran}\n`, 0o644)
  script('good', `#!/bin/sh\ntouch ${ran}\n`, 0o755)
  script('shell-less', '#! /nowhere/sh -e\n', 0o755)
  script('windows', `#!/bin/sh\r\ntouch ${ran}\r\n`, 0o755)
  script('windows-env', '#!/usr/bin/env sh\r\n', 0o755)
  script('open', `#!/bin/sh\ntouch ${ran}\n`, 0o757)
  script('systemctl', `#!/bin/sh\ntouch ${ran}\n`, 0o755)
  mkdirSync(at('directory'))
  writeFileSync(at('stale.pid'), '4194303\n')
  writeFileSync(at('bad.pid'), 'none\n')
  writeFileSync(at('init.pid'), '1\n')
  writeFileSync(at('open.pid'), `${process.pid}\n`)
  chmodSync(at('open.pid'), 0o666)
  symlinkSync(`/proc/${process.pid}/comm`, at('linked.pid'))
  const sleeper = spawn('sleep', ['300'], { stdio: 'ignore' })
  t.teardown(() => sleeper.kill('SIGKILL'))
  writeFileSync(at('good.pid'), `${sleeper.pid}\n`)
  // A connection is all that comes: nothing is sent.
  let received = ''
  const server = createServer((socket) => socket.on('data', (data: Buffer) => (received += data.toString())))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const closed = createServer()
  closed.listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port: closedPort } = closed.address() as AddressInfo
  await new Promise((resolve) => closed.close(resolve))

  const bus = await Bus.start(t)
  await Peer.connect(t, bus, managerName)

  const exec = (name: string) => ({ exec: [at(name), 'secret-argument'] })
  const signal = (name: string) => ({ signal: { name: 'SIGHUP', pidFile: at(name) } })
  const http = (url: string) => ({ http: { url } })
  const systemd = existsSync('/run/systemd/system')
  const cases: [object, string, RegExp][] = [
    [exec('missing'), 'FAULT', /^exec missing: .*\/missing: no such file$/],
    [exec('plain'), 'FAULT', /^exec plain: .* is not executable: EACCES$/],
    [exec('directory'), 'FAULT', /is not a regular file$/],
    [exec('shell-less'), 'FAULT', /is a script for \/nowhere\/sh: no such file$/],
    [exec('windows'), 'FAULT', /\/windows has Windows line ends: the kernel looks for the interpreter "\/bin\/sh\\r"$/],
    [exec('windows-env'), 'WARN', /\/windows-env has Windows line ends: \/usr\/bin\/env gets the argument "sh\\r"$/],
    [exec('open'), 'OK', /\/open is executable$/],
    [exec('good'), 'OK', /\/good is executable$/],
    [{ exec: ['true', 'secret-argument'] }, 'OK', /^exec true: (\/usr)?\/bin\/true is executable$/],
    [
      { exec: ['nosuch-program'] },
      'FAULT',
      /^exec nosuch-program: nosuch-program: no such program in \/usr\/local\/sbin:/,
    ],
    [
      { systemd: { unit: 'x.service', action: 'restart', socket: at('no-bus') } },
      'FAULT',
      /^systemd restart x\.service: .*\/no-bus: ENOENT/,
    ],
    [
      { systemd: { unit: 'x.service', action: 'restart', socket: bus.socket } },
      'OK',
      /: systemd answers at .*\/socket$/,
    ],
    [exec('systemctl'), systemd ? 'OK' : 'FAULT', systemd ? /can be run$/ : /needs a running systemd/],
    [signal('nowhere/x.pid'), 'FAULT', /\/nowhere: no such directory$/],
    [
      signal('none.pid'),
      'WARN',
      isRoot
        ? /\/none\.pid: no such file: is the process running\?$/
        : /\/none\.pid: the process is not running yet; CAP_KILL is missing/,
    ],
    [signal('stale.pid'), 'WARN', /no such process 4194303: the pid file is stale/],
    [signal('bad.pid'), 'FAULT', /does not start with a process ID$/],
    [signal('init.pid'), 'FAULT', /names process 1, which holdfast never signals$/],
    [signal('open.pid'), 'FAULT', /open\.pid: is writable by everybody: holdfast does not trust it$/],
    [signal('linked.pid'), 'FAULT', /linked\.pid: \/proc lies on procfs, /],
    [signal('good.pid'), 'OK', /holdfast may signal process \d+ .* of user \d+$/],
    [http(`http://127.0.0.1:${port}/reload?token=hidden`), 'OK', /^http 127\.0\.0\.1:\d+: a server listens there$/],
    [http(`http://127.0.0.1:${closedPort}/`), 'WARN', /no connection \(ECONNREFUSED\)$/],
    [http('http://nowhere.invalid/'), 'WARN', /\((ENOTFOUND|EAI_AGAIN|ETIMEDOUT)\)$/],
  ]
  scene.configure([
    { path: scene.target, contents: [{ secret: 'serving-cert' }], afterPublish: cases.map(([hook]) => hook) },
  ])
  const checked = await scene.check(t)
  const hooks = checked.all('hook')
  t.equal(hooks.length, cases.length)
  cases.forEach(([, status, found], index) => {
    t.match(hooks[index], { status, found })
    t.equal(hooks[index]?.advice === null, status === 'OK')
  })
  t.match(checked.one('writers', at('open')), {
    status: 'WARN',
    found: /everybody may write to .*\/open \(mode 0757\)$/,
  })
  t.notOk(existsSync(ran), 'nothing was run')
  t.equal(received, '', 'nothing was sent')
  t.notMatch(JSON.stringify(checked.document), /secret-argument|hidden|reload/)
})

/** A program of the same executable that runs ours, and stays. */
const runsAnother = `
const { status, stdout, stderr } = require('node:child_process').spawnSync(process.argv[1], process.argv.slice(2))
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = status`

const skip = needsRoot || (spawnSync('unshare', ['--version']).status === 0 ? false : 'needs unshare')

await t.test("check warns that a signal reaches no process in a container's own PID namespace", { skip }, async (t) => {
  const scene = new Scene(t)
  const pidFile = scene.path('x.pid')
  // The number of a process that is there: another one than the file means.
  writeFileSync(pidFile, '2\n')
  scene.configure([
    {
      path: scene.target,
      contents: [{ secret: 'serving-cert' }],
      afterPublish: [{ signal: { name: 'SIGHUP', pidFile } }],
    },
  ])
  const under = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
  t.match((await scene.check(t, { under })).one('hook'), {
    status: 'FAULT',
    found: /PID namespace of its own/,
    advice: 'set hostPID: true in the pod',
  })
  // As with kubectl exec: process 1 is the agent, and this one another.
  const beside = [...under, process.execPath, '-e', runsAnother]
  t.match((await scene.check(t, { under: beside })).one('hook'), { status: 'FAULT', found: /of its own/ })
})
