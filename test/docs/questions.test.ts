/** The index by question, docs/README.md: a newcomer's questions find their answers within two clicks from README.md. */
import { dirname, join } from 'node:path'
import t from 'tap'
import { anchorsOf, linksOf, pages, read } from './pages.js'

const index = 'docs/README.md'

/** A part of a question of the index, and words that its answer cannot do without. */
const questions: readonly (readonly [question: string, ...answer: RegExp[]])[] = [
  ['or does a Secret volume suffice', /suffices/, /CSI driver/, /Reloader/],
  ['on a node without Node', /scripts\/executable\.sh/],
  ['On k3s, with nginx', /k3s\.yaml/, /nginx -c/, /SIGHUP/],
  ['with cert-manager', /Certificate/, /kind: AgentConfiguration/],
  ['With Flux or Argo CD', /helm template/, /Prune=false/],
  ['replace k8s-sidecar', /METHOD/, /holdfast adopt/],
  ['A script with `mv`', /holdfast write/, /holdfast replace/],
  ["containerd's certs.d", /\/etc\/containerd\/certs\.d/, /kind: AgentConfiguration/],
  ['A kubeadm control plane', /kubeadm certs renew/, /holdfast rollout/],
  ['On RKE2', /the chart/, /rke2-server/, /\/var\/lib\/rancher\/rke2\/agent\/pod-manifests/],
  ['in memory and flash', /MiB/, /flushes/],
  ['What survives a power cut', /survives a power cut/],
  ['On which file systems', /ext4/, /xfs/, /btrfs/],
  ['What does this reason', /`TargetUnfit`/, /`ENOSPC`/],
  ['What does this alert mean', /HoldfastDrift/],
  ['How do I upgrade', /helm upgrade/, /systemctl restart/],
  ['How do I downgrade', /rollout undo/],
  ['How do I uninstall it', /helm uninstall/, /kubectl delete/, /published files stay/],
  ['back out of a bad certificate', /holdfast rollback/],
  ['Is my disk honest', /holdfast torture/, /witness/],
  ['Which rights does it need', /holdfast rbac/],
  ['Is my configuration valid, in Git', /check --config holdfast\.yaml --offline/, /exit code 2/],
  ['Which flags, and which variables', /`KUBECONFIG`/, /`HOLDFAST_CONFIG`/, /-o=json/],
  ['how do I report a vulnerability', /private/],
  ['How do I embed it', /replaceDirectory/],
]

/** The page that a link of the index leads to, and of it the section, up to the next heading of its level. */
function answer(link: string): string {
  const [path = '', fragment] = link.split('#')
  const text = read(join(dirname(index), path))
  if (fragment === undefined) return text
  // A prompt of root in a transcript is no heading.
  const masked = text.replaceAll(/^```[^]*?^```$/gm, (block) => block.replaceAll(/^#/gm, ' '))
  const headings = [...masked.matchAll(/^(#+) .*$/gm)]
  const from = headings.findIndex((heading) =>
    anchorsOf(text.slice(0, heading.index + heading[0].length)).has(fragment),
  )
  const level = headings[from]?.[1]?.length ?? 0
  const next = headings.slice(from + 1).find(([, marks = '']) => marks.length <= level)
  return text.slice(headings[from]?.index, next?.index)
}

await t.test('each question finds its answer within two clicks from README.md', async (t) => {
  t.ok(linksOf(read('README.md')).includes(index), 'the first click')
  const lines = read(index).split('\n')
  for (const [question, ...words] of questions) {
    const [line = '', ...more] = lines.filter((one) => one.startsWith('- [') && one.includes(question))
    t.ok(line !== '' && more.length === 0, `one line has "${question}"`)
    const [, link = ''] = /\]\((\S+)\)$/.exec(line) ?? []
    const text = answer(link)
    for (const word of words) t.match(text, word, `${question}: ${link}`)
  }
})

await t.test('each page of docs/ is two clicks from README.md', async (t) => {
  const to = (page: string): string[] =>
    linksOf(read(page))
      .filter((link) => !/^[a-z]+:/.test(link) && /\.md(?:#|$)/.test(link))
      .map((link) => join(dirname(page), link.split('#')[0] ?? ''))
  const near = new Set(['README.md', ...to('README.md')])
  const reached = new Set([...near, ...[...near].flatMap((page) => to(page))])
  const far = pages().filter((page) => page.startsWith('docs/') && !reached.has(page))
  // An alert names its own page.
  t.same(
    far.filter((page) => !page.startsWith('docs/alerts/')),
    [],
  )
})

/** A program writes its first paragraph. */
const others = ['docs/mutation-score.md']

await t.test('each page says in its first paragraph for whom it is', async (t) => {
  const shown = pages().filter((page) => page.startsWith('docs/') && !/^docs\/decisions\/(?!README)/.test(page))
  for (const page of shown.filter((one) => !others.includes(one))) {
    t.match(read(page), /^# .+\n\nFor [a-z][^]{20,}?\n\n/, page)
  }
})
