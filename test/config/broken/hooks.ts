/** Mistakes in hooks and in the server. */
import { broken, brokenAt, type BrokenConfiguration } from '../broken-configuration.js'

const hook = 'signal: { name: SIGHUP, pidFile: /run/x.pid }'
const beside = (setting: string): string => `${hook}\n        ${setting}`
const check = (one: string): string => `beforePublish: [${one}]\n    afterPublish:`

export const brokenHooks: readonly BrokenConfiguration[] = [
  ...brokenAt(hook, 'directories[0].afterPublish[0]', {
    'a hook of two kinds': [
      beside('exec: [/bin/true]'),
      ': has both signal and exec: give exactly one of signal, exec, http, systemd, staticPod',
    ],
    'a hook of no kind': [
      'timeout: 10s',
      ': is incomplete: give exactly one of signal, exec, http, systemd, staticPod',
    ],
    'a signal that is not one': [
      'signal: { name: ^SIGHUPP, pidFile: /run/x.pid }',
      '.signal.name: "SIGHUPP" is not a signal: did you mean "SIGHUP"?',
    ],
    'a signal that nobody can take': [
      'signal: { name: ^SIGKILL, pidFile: /run/x.pid }',
      '.signal.name: SIGKILL only ends or stops a process: write as in "SIGHUP"',
    ],
    'a signal that is none': [
      'signal: { name: ^SIGFOO, pidFile: /run/x.pid }',
      '.signal.name: "SIGFOO" is not a signal: write as in "SIGHUP", "SIGUSR1"',
    ],
    'a relative pidFile': [
      'signal: { name: HUP, pidFile: ^x.pid }',
      '.signal.pidFile: "x.pid" is not an absolute path',
    ],
    'no pidFile': ['signal: ^{ name: HUP }', '.signal.pidFile: is required: write pidFile: /run/NAME.pid'],
    'a shell line': [
      'exec: ^systemctl reload x',
      '.exec: is one string: write a list, ["/usr/bin/systemctl", "reload", "x"]: there is no shell',
    ],
    'a relative command': ['exec: [^bin/systemctl, reload, x]', '.exec[0]: "bin/systemctl" is not an absolute path'],
    'an empty command': ['exec: ^[]', '.exec: is an empty list'],
    'a number as an argument': ['exec: [/bin/sleep, ^10]', '.exec[1]: is not a string: quote each argument'],
    'a unit without its type': [
      'systemd: { unit: ^nginx }',
      '.systemd.unit: "nginx" is not the name of a unit: write it with its type, as in "nginx.service"',
    ],
    'an action that systemd does not know': [
      'systemd: { unit: nginx.service, action: ^relaod }',
      '.systemd.action: "relaod" is not one of reload-or-restart, try-reload-or-restart, reload, restart, try-restart, start: did you mean "reload"?',
    ],
    'a static pod without the place of its manifest': [
      'staticPod: ^{ name: etcd }',
      '.staticPod.manifestDirectory: is required: write manifestDirectory: /etc/kubernetes/manifests',
    ],
    'a URL that is not one': [
      'http: { url: ^"127.0.0.1:9000" }',
      '.http.url: is not a URL: write as in "http://127.0.0.1:9000/reload"',
    ],
    'a URL of another kind': [
      'http: { url: ^"ftp://127.0.0.1/" }',
      '.http.url: is not an http or https URL: write as in "http://127.0.0.1:9000/reload"',
    ],
    'a URL with credentials': [
      'http: { url: ^"http://root:hunter2@127.0.0.1/" }',
      '.http.url: contains credentials: remove them: secrets do not belong in this file',
    ],
    'a URL with a fragment': [
      'http: { url: ^"http://127.0.0.1/#hunter2" }',
      ".http.url: has a fragment: remove what follows '#': it is never sent",
    ],
    'a method of no sense': [
      'http: { url: "http://127.0.0.1/", method: ^RELOAD }',
      '.http.method: "RELOAD" is not one of POST, GET, PUT, PATCH, DELETE, HEAD',
    ],
    'a timeout without a unit': [beside('timeout: ^10'), '.timeout: 10 has no unit: write "10s" for seconds'],
    'a timeout of no sense': [
      beside('timeout: ^soon'),
      '.timeout: "soon" is not a duration: write as in "10s", "1m30s", "500ms"',
    ],
    'a timeout of nothing': [beside('timeout: ^0s'), '.timeout: "0s" is out of range: write 1ms to 1h'],
    'negative retries': [beside('retries: ^-1'), '.retries: -1 is out of range: write 0 to 100'],
    'a jitter without a unit': [beside('jitter: ^30'), '.jitter: 30 has no unit: write "30s" for seconds'],
    'retries as a string': [
      beside('retries: ^"3"'),
      '.retries: must be a whole number, not a string: write 3, without quotes',
    ],
    'retries as a fraction': [beside('retries: ^1.5'), '.retries: must be a whole number, not 1.5'],
  }),
  broken(
    'a timeout in the wrong place',
    hook,
    'exec: [/bin/true]\n      - signal: { name: HUP, pidFile: /x, timeout: 1s }',
    '18:43: directories[0].afterPublish[1].signal.timeout: unknown field: it belongs to the hook, beside its type',
  ),
  broken(
    'a template in the place of a unit',
    hook,
    'systemd: { unit: "getty@.service", socket: bus }',
    '17:26: directories[0].afterPublish[0].systemd.unit: "getty@.service" is not the name of a unit: write it with its type, as in "nginx.service"',
    '17:52: directories[0].afterPublish[0].systemd.socket: "bus" is not an absolute path',
  ),
  ...brokenAt('afterPublish:', 'directories[0].beforePublish[0].', {
    'a check that does not look at the new content': [
      check('{ exec: ^[nginx, -t] }'),
      'exec: has no argument with {dir}, which stands for the new content: without it, the command checks what is published already',
    ],
    'a check that takes long': [
      check('{ exec: [nginx, "{dir}"], timeout: ^2m }'),
      'timeout: "2m" is out of range: write 1ms to 1m',
    ],
  }),
  broken(
    'a check that is no command',
    'afterPublish:',
    check('{ http: { url: "http://127.0.0.1/" } }'),
    '16:21: directories[0].beforePublish[0].exec: is required: write exec: [nginx, -t, -c, "{dir}/nginx.conf"]',
    '16:23: directories[0].beforePublish[0].http: unknown field: it belongs to afterPublish: a check is a command, and runs once for one content',
  ),
  ...brokenAt('"127.0.0.1:10808"', 'server.address: ', {
    'no port': ['127.0.0.1', '"127.0.0.1" is not HOST:PORT: write as in "127.0.0.1:10808"'],
    'a port too high': ['"127.0.0.1:65536"', '"127.0.0.1:65536" has a port above 65535'],
    'no host': ['":10808"', '":10808" has no host: write "127.0.0.1:10808", or "[::]:10808" for every interface'],
    'IPv6 without brackets': ['"::1"', '"::1" is not HOST:PORT: write "[::1]:10808"'],
    'an IPv6 address and its port, without brackets': ['"::1:80"', '"::1:80" is not HOST:PORT: write "[::1]:80"'],
    'brackets around IPv4': ['"[127.0.0.1]:80"', '"127.0.0.1" is not an IPv6 address'],
    'a host that is not one': ['"999.1.1.1:80"', '"999.1.1.1" is not a host'],
  }),
  broken(
    'server as a string',
    '{ address: "127.0.0.1:10808" }',
    '"127.0.0.1:10808"',
    '20:9: server: must be a mapping, not a string',
  ),
  // Several at once.
  {
    mistake: 'all of it',
    replace: [
      ['mode: "0755"', 'mode: 0755'],
      ['secrets/serving-cert', '../x'],
      ['SIGHUP', 'SIGHUB'],
      ['"127.0.0.1:10808"', '10808'],
      ['kind:', 'kin:'],
    ],
    lines: [
      '1:1: kind: is required: write kind: AgentConfiguration',
      '2:1: kin: unknown field: did you mean "kind"?',
      '8:11: directories[0].mode: 0755 is a number (755 in YAML 1.2): write it as a string, "0755"',
      '11:15: directories[0].contents[0].into: "../x" contains \'..\': name a path inside the target',
      '17:25: directories[0].afterPublish[0].signal.name: "SIGHUB" is not a signal: did you mean "SIGHUP"?',
      '20:20: server.address: must be a string, not a number: write as in "127.0.0.1:10808"',
    ],
  },
]
