/**
 * Keeps the Secrets of a namespace as directories with @kubernetes/client-node's informer and write-file-atomic, the way an operator
 * would write it in an afternoon. Arguments: kubeconfig, namespace, directory, names of the Secrets by commas (all where empty).
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node'
import writeFileAtomic from 'write-file-atomic'

const [kubeconfig, namespace, directory, names] = process.argv.slice(2)
const wanted = new Set(names.split(',').filter(Boolean))
const config = new KubeConfig()
config.loadFromFile(kubeconfig)
const api = config.makeApiClient(CoreV1Api)
const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, () =>
  api.listNamespacedSecret({ namespace }),
)

async function write({ metadata: { name }, data }) {
  if (wanted.size > 0 && !wanted.has(name)) return
  const target = join(directory, name)
  await mkdir(target, { recursive: true })
  const files = Object.entries(data ?? {})
  await Promise.all(
    files.map(([key, content]) => writeFileAtomic(join(target, key), Buffer.from(content, 'base64'), { mode: 0o600 })),
  )
}

const fail = (error) => {
  console.error(error)
  process.exit(1)
}
for (const event of ['add', 'update']) informer.on(event, (secret) => void write(secret).catch(fail))
informer.on('error', fail)
await informer.start()
