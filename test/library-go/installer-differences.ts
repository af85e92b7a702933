import { allOf, at, either, ends, failed, type Row } from './row.js'

export const installerDifferences = [
  {
    libraryGo: 'removes the live manifest, then writes it in place',
    holdfast: 'renames over it',
    why: 'a crash in between leaves no manifest: on a single node, no API server to reinstall it',
    tested: ['test/e2e/static-pods.test.ts', 'the manifest is whole, and so is what it names'],
  },
  {
    libraryGo: 'manifests in random order',
    holdfast: "the pod's own last",
    why: 'what watches over it exists when it changes',
    tested: ['test/e2e/static-pods.test.ts', 'the pod itself comes last'],
  },
  {
    libraryGo: 'the same revision again: the pod is deleted and created',
    holdfast: 'nothing changes, so kubelet does nothing',
    why: 'a retry should not restart what runs',
    tested: [
      'test/e2e/static-pods.test.ts',
      'by flags alone: layout, modes, words, manifests, event; again, nothing changes',
    ],
  },
  {
    libraryGo: "the revision's directory is made first, and each object's appears in it one by one",
    holdfast: 'the revision appears complete',
    why: 'a half-written revision is never taken for a complete one',
    shown: at('only theirs', /^resources/, 'a required object is missing', 'no pod.yaml'),
  },
  {
    libraryGo: 'an existing revision is written over',
    holdfast: 'left alone, refused or replaced: see above; the same pods in another form, and `staging/`, are the same',
    why: "a running pod may mount it, and a retry over a revision of library-go's succeeds",
    shown: allOf('the live revision, with other content'),
  },
  {
    libraryGo: 'staging below the directories, under one name for all',
    holdfast: 'a dot-name beside them, random, under a lock, with a record',
    why: 'holdfast recognizes what a crash leaves, and removes it',
    shown: either(
      at('only theirs', /\/staging(\/|$)/),
      at('only ours', /\/\.holdfast-[0-9a-f]{16}\.(lock|watch|\d+)$/),
    ),
  },
  {
    libraryGo: 'modes are what the umask leaves of them',
    holdfast: 'exactly as in the layout',
    why: "a process's umask is not the node's policy",
    shown: at('mode', /^(manifests|resources)/, 'a strict umask'),
  },
  {
    libraryGo: 'the lock file is made 0644',
    holdfast: '0600',
    why: 'whoever may open it may hold it',
    shown: at('mode', /^lock$/),
  },
  {
    libraryGo: 'two fsyncs for each file, in turn',
    holdfast: 'four barriers in all',
    why: 'see the table above',
    tested: ['test/crash/install/install.test.ts', 'costs four barriers'],
  },
  {
    libraryGo: 'manifests as Go encodes a Pod, with empty fields',
    holdfast: 'as JSON, with the fields that they have',
    why: 'it is the same pod for kubelet',
    shown: at('form', /\.yaml$/),
  },
  {
    libraryGo: 'the manifest is decoded as a Pod, unknown fields dropped',
    holdfast: 'unknown fields are kept',
    why: 'kubelet decides what it knows',
    shown: at('content', /^(manifests|resources\/web-pod-6)\/web-pod\.yaml$/, 'a field that no Pod has'),
  },
  {
    libraryGo: 'an operator may compile in its check of readiness, and changes to the pod',
    holdfast: '`--ready-url`, `--ready-exec`, `--kubelet-url`, mirror pod; no changes to the pod',
    why: "holdfast is no operator's program; what the manifest should hold belongs in the ConfigMap",
    tested: ['test/library-go/commands/main.go', 'startupmonitor.NewCommand(check{}'],
  },
  {
    libraryGo: 'API references in a manifest go unseen until kubelet refuses it',
    holdfast: 'refused before anything is written',
    why: "same check as kubelet's `HasAPIObjectReference`",
    shown: allOf('a pod that refers to the API'),
  },
  {
    libraryGo: 'any Pod is written, whatever kubelet thinks of it',
    holdfast: 'what kubelet is known to refuse is refused, with its field',
    why: 'kubelet would end the pod that runs',
    shown: allOf('a pod that kubelet refuses'),
  },
  {
    libraryGo: '`ConfigMap.binaryData` ignored',
    holdfast: 'written like `data`',
    why: 'it is content',
    shown: at('only ours', /\/bytes$/, 'bytes that are no text', 'cert-syncer: first files'),
  },
  {
    libraryGo: '4 tries within 0.3 s',
    holdfast: 'tries until the deadline, with backoff; 429 too',
    why: 'an API server that restarts takes longer',
    tested: ['test/e2e/static-pod-installers.test.ts', 'a server that is away is waited for'],
  },
  {
    libraryGo: 'errors while waiting for other installers make no event',
    holdfast: 'they do; giving way to a newer installer does not',
    why: 'a failed installation should be seen',
    tested: ['test/static-pods/install-api-answers.test.ts', 'this one gives way, writes nothing, and makes no event'],
  },
  {
    libraryGo: 'the pause of 30 s before an installation cannot be ended',
    holdfast: 'SIGTERM and the deadline end it; without `POD_NAME` there is none',
    why: 'a pod that is deleted should go',
    tested: ['test/e2e/static-pod-installers.test.ts', 'it ends while it pauses'],
  },
  {
    libraryGo: 'events regard an owner that it looks up',
    holdfast: 'the owner of its own pod in the list it has read',
    why: 'fewer rights',
    tested: ['test/e2e/static-pod-installers.test.ts', "events regard what made the installer's pod"],
  },
  {
    libraryGo: 'objects are read as protobuf',
    holdfast: 'as JSON',
    why: 'no generated code',
    tested: [
      'test/static-pods/install-api-answers.test.ts',
      'the tree on the disk is the objects, by name, key and byte',
    ],
  },
  {
    libraryGo: 'failures end with 1, in `prune` and the monitor mostly with 255',
    holdfast: '1, 2 for what cannot be right, 3 for unknown durability, 75 for a lock',
    why: 'an operator sees a failure all the same, people see which one',
    shown: ends(failed, failed),
  },
  {
    libraryGo: 'a stale read may overwrite a newer certificate in `--cert-dir`',
    holdfast: 'reads again if a newer version of the object is published there',
    why: 'an installer with a newer answer may have been faster',
    tested: ['test/static-pods/newer-published.test.ts', 'what is published from a newer version is read once more'],
  },
  {
    libraryGo: 'no revision check under the lock',
    holdfast: 'an older revision than the live one is refused, `--allow-older`',
    why: 'without POD_NAME, installers come in any order',
    shown: allOf('an older revision'),
  },
  {
    libraryGo: 'revisions as any int32 text',
    holdfast: 'decimal digits, no sign, no leading zero',
    why: 'they are names of directories',
    shown: allOf('a leading zero'),
  },
  {
    libraryGo: '`--resource-dir` and `--pod-manifest-dir` may be missing',
    holdfast: 'both are required',
    why: 'without them it would write to the working directory',
    shown: allOf('no --resource-dir'),
  },
] satisfies readonly Row[]
