/** Mistakes in hooks and in the server. */
import { broken, type BrokenConfiguration } from '../broken-configuration.js'

const hook = 'signal: { name: SIGHUP, pidFile: /run/x.pid }'
const address = '"127.0.0.1:10808"'

export const brokenHooks: readonly BrokenConfiguration[] = [
  // Hooks.
  broken(
    'a hook of two kinds',
    hook,
    `${hook}\n        exec: [/bin/true]`,
    '17:9: directories[0].afterPublish[0]: has both signal and exec: give exactly one of signal, exec, http, systemd, staticPod',
  ),
  broken(
    'a hook of no kind',
    hook,
    'timeout: 10s',
    '17:9: directories[0].afterPublish[0]: is incomplete: give exactly one of signal, exec, http, systemd, staticPod',
  ),
  broken(
    'a signal that is not one',
    hook,
    'signal: { name: SIGHUPP, pidFile: /run/x.pid }',
    '17:25: directories[0].afterPublish[0].signal.name: "SIGHUPP" is not a signal: did you mean "SIGHUP"?',
  ),
  broken(
    'a relative pidFile',
    hook,
    'signal: { name: HUP, pidFile: x.pid }',
    '17:39: directories[0].afterPublish[0].signal.pidFile: "x.pid" is not an absolute path',
  ),
  broken(
    'no pidFile',
    hook,
    'signal: { name: HUP }',
    '17:17: directories[0].afterPublish[0].signal.pidFile: is required: write pidFile: /run/NAME.pid',
  ),
  broken(
    'a shell line',
    hook,
    'exec: systemctl reload x',
    '17:15: directories[0].afterPublish[0].exec: is one string: write a list, ["/usr/bin/systemctl", "reload", "x"]: there is no shell',
  ),
  broken(
    'a relative command',
    hook,
    'exec: [bin/systemctl, reload, x]',
    '17:16: directories[0].afterPublish[0].exec[0]: "bin/systemctl" is not an absolute path',
  ),
  broken(
    'a check that does not look at the new content',
    'afterPublish:',
    'beforePublish: [{ exec: [nginx, -t] }]\n    afterPublish:',
    '16:29: directories[0].beforePublish[0].exec: has no argument with {dir}, which stands for the new content: without it, the command checks what is published already',
  ),
  broken(
    'a check that is no command',
    'afterPublish:',
    'beforePublish: [{ http: { url: "http://127.0.0.1/" } }]\n    afterPublish:',
    '16:21: directories[0].beforePublish[0].exec: is required: write exec: [nginx, -t, -c, "{dir}/nginx.conf"]',
    '16:23: directories[0].beforePublish[0].http: unknown field: it belongs to afterPublish: a check is a command, and runs once for one content',
  ),
  broken(
    'a check that takes long',
    'afterPublish:',
    'beforePublish: [{ exec: [nginx, "{dir}"], timeout: 2m }]\n    afterPublish:',
    '16:56: directories[0].beforePublish[0].timeout: "2m" is out of range: write 1ms to 1m',
  ),
  broken(
    'a unit without its type',
    hook,
    'systemd: { unit: nginx }',
    '17:26: directories[0].afterPublish[0].systemd.unit: "nginx" is not the name of a unit: write it with its type, as in "nginx.service"',
  ),
  broken(
    'an action that systemd does not know',
    hook,
    'systemd: { unit: nginx.service, action: relaod }',
    '17:49: directories[0].afterPublish[0].systemd.action: "relaod" is not one of reload-or-restart, try-reload-or-restart, reload, restart, try-restart, start: did you mean "reload"?',
  ),
  broken(
    'a template in the place of a unit',
    hook,
    'systemd: { unit: "getty@.service", socket: bus }',
    '17:26: directories[0].afterPublish[0].systemd.unit: "getty@.service" is not the name of a unit: write it with its type, as in "nginx.service"',
    '17:52: directories[0].afterPublish[0].systemd.socket: "bus" is not an absolute path',
  ),
  broken(
    'a static pod without the place of its manifest',
    hook,
    'staticPod: { name: etcd }',
    '17:20: directories[0].afterPublish[0].staticPod.manifestDirectory: is required: write manifestDirectory: /etc/kubernetes/manifests',
  ),
  broken('an empty command', hook, 'exec: []', '17:15: directories[0].afterPublish[0].exec: is an empty list'),
  broken(
    'a number as an argument',
    hook,
    'exec: [/bin/sleep, 10]',
    '17:28: directories[0].afterPublish[0].exec[1]: is not a string: quote each argument',
  ),
  broken(
    'a URL that is not one',
    hook,
    'http: { url: "127.0.0.1:9000" }',
    '17:22: directories[0].afterPublish[0].http.url: is not a URL: write as in "http://127.0.0.1:9000/reload"',
  ),
  broken(
    'a URL of another kind',
    hook,
    'http: { url: "ftp://127.0.0.1/" }',
    '17:22: directories[0].afterPublish[0].http.url: is not an http or https URL: write as in "http://127.0.0.1:9000/reload"',
  ),
  broken(
    'a URL with credentials',
    hook,
    'http: { url: "http://root:hunter2@127.0.0.1/" }',
    '17:22: directories[0].afterPublish[0].http.url: contains credentials: remove them: secrets do not belong in this file',
  ),
  broken(
    'a URL with a fragment',
    hook,
    'http: { url: "http://127.0.0.1/#hunter2" }',
    "17:22: directories[0].afterPublish[0].http.url: has a fragment: remove what follows '#': it is never sent",
  ),
  broken(
    'a method of no sense',
    hook,
    'http: { url: "http://127.0.0.1/", method: RELOAD }',
    '17:51: directories[0].afterPublish[0].http.method: "RELOAD" is not one of POST, GET, PUT, PATCH, DELETE, HEAD',
  ),
  broken(
    'a timeout without a unit',
    hook,
    `${hook}\n        timeout: 10`,
    '18:18: directories[0].afterPublish[0].timeout: 10 has no unit: write "10s" for seconds',
  ),
  broken(
    'a timeout of no sense',
    hook,
    `${hook}\n        timeout: soon`,
    '18:18: directories[0].afterPublish[0].timeout: "soon" is not a duration: write as in "10s", "1m30s", "500ms"',
  ),
  broken(
    'a timeout of nothing',
    hook,
    `${hook}\n        timeout: 0s`,
    '18:18: directories[0].afterPublish[0].timeout: "0s" is out of range: write 1ms to 1h',
  ),
  broken(
    'a timeout in the wrong place',
    hook,
    'exec: [/bin/true]\n      - signal: { name: HUP, pidFile: /x, timeout: 1s }',
    '18:43: directories[0].afterPublish[1].signal.timeout: unknown field: it belongs to the hook, beside its type',
  ),
  broken(
    'negative retries',
    hook,
    `${hook}\n        retries: -1`,
    '18:18: directories[0].afterPublish[0].retries: -1 is out of range: write 0 to 100',
  ),
  broken(
    'a jitter without a unit',
    hook,
    `${hook}\n        jitter: 30`,
    '18:17: directories[0].afterPublish[0].jitter: 30 has no unit: write "30s" for seconds',
  ),
  broken(
    'retries as a string',
    hook,
    `${hook}\n        retries: "3"`,
    '18:18: directories[0].afterPublish[0].retries: must be a whole number, not a string: write 3, without quotes',
  ),
  broken(
    'retries as a fraction',
    hook,
    `${hook}\n        retries: 1.5`,
    '18:18: directories[0].afterPublish[0].retries: must be a whole number, not 1.5',
  ),
  broken(
    'a signal that nobody can take',
    'name: SIGHUP',
    'name: SIGKILL',
    '17:25: directories[0].afterPublish[0].signal.name: SIGKILL only ends or stops a process: write as in "SIGHUP"',
  ),
  broken(
    'a signal that is none',
    'name: SIGHUP',
    'name: SIGFOO',
    '17:25: directories[0].afterPublish[0].signal.name: "SIGFOO" is not a signal: write as in "SIGHUP", "SIGUSR1"',
  ),
  // Server.
  broken(
    'no port',
    address,
    '127.0.0.1',
    '20:20: server.address: "127.0.0.1" is not HOST:PORT: write as in "127.0.0.1:10808"',
  ),
  broken(
    'a port too high',
    address,
    '"127.0.0.1:65536"',
    '20:20: server.address: "127.0.0.1:65536" has a port above 65535',
  ),
  broken(
    'no host',
    address,
    '":10808"',
    '20:20: server.address: ":10808" has no host: write "127.0.0.1:10808", or "[::]:10808" for every interface',
  ),
  broken(
    'IPv6 without brackets',
    address,
    '"::1"',
    '20:20: server.address: "::1" is not HOST:PORT: write "[::1]:10808"',
  ),
  broken(
    'brackets around IPv4',
    address,
    '"[127.0.0.1]:80"',
    '20:20: server.address: "127.0.0.1" is not an IPv6 address',
  ),
  broken('a host that is not one', address, '"999.1.1.1:80"', '20:20: server.address: "999.1.1.1" is not a host'),
  broken(
    'server as a string',
    '{ address: "127.0.0.1:10808" }',
    '"127.0.0.1:10808"',
    '20:9: server: must be a mapping, not a string',
  ),
  broken(
    'an IPv6 address and its port, without brackets',
    address,
    '"::1:80"',
    '20:20: server.address: "::1:80" is not HOST:PORT: write "[::1]:80"',
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
