/** A node with one directory of a Secret and a ConfigMap, for tests of the agent. */
import { type Test } from 'tap'
import { Node } from './holdfast.js'

export const canary = 'CANARY-8c2e'
export const web = { path: 'disk/web', contents: [{ secret: 'web', into: 'secret' }, { configMap: 'conf' }] }

export function webNode(t: Test): Node {
  const node = new Node(t, [web])
  node.put('Secret', 'web', { password: `${canary}-1`, user: 'alice' })
  node.put('ConfigMap', 'conf', { 'app.conf': 'port=80\n' })
  return node
}
