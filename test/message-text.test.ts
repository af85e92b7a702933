import t from 'tap'
import { objectName } from '../src/message-text.js'

void t.test(
  'an object has one name in logs, errors, status and maps: the kind, the namespace and the name',
  async (t) => {
    const version = { uid: 'u', resourceVersion: '1' }
    t.equal(objectName({ kind: 'Secret', namespace: 'kube-system', name: 'ca', ...version }), 'Secret kube-system/ca')
  },
)
