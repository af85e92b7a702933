import { at, either, ends, exactly, failed, installed, refused, wrongUsage, type Row } from './row.js'

export const installerDifferences = [
  {
    libraryGo: 'removes the live manifest, then writes it in place',
    holdfast: 'renames over it',
    why: 'a crash in between leaves no manifest: on a single node, no API server to reinstall it',
    tested: ['test/crash/install/install.test.ts', 'a revision after another'],
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
      'install writes layout, modes, words, manifests and an event by flags alone, and changes nothing in a second run',
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
    holdfast:
      'left alone, refused or replaced: see [what you can rely on](static-pods.md#what-you-can-rely-on); the same pods in another form, and `staging/`, are the same',
    why: "a running pod may mount it, and a retry over a revision of library-go's succeeds",
    shown: exactly(
      'the live revision, with other content',
      'end: 0 > 1',
      'events: Normal StaticPodInstallerCompleted > Warning StaticPodInstallerFailed',
      'mode manifests/web-pod.yaml: 0600 > 0644',
      ...installed('resources/web-pod-6').filter((line) => line.includes('configmaps')),
      'only theirs resources/web-pod-6/secrets/client/run.sh',
      'only theirs resources/web-pod-6/secrets/client/tls.crt',
      'mode resources/web-pod-6/secrets/client/tls.key: 0600 > 0644',
      'content resources/web-pod-6/secrets/client/tls.key: 6 on NODE > other',
    ),
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
    libraryGo: "another program's directory is replaced",
    holdfast: 'once seven checks have passed; what it held stays beside it until the next publication',
    why: 'there is a way back from taking it over',
    shown: at('only ours', /\/\.holdfast-[0-9a-f]{16}\.0-[0-9a-f]{16}(\/|$)/),
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
    why: '[fewer flushes of the disk](performance.md#what-a-revision-of-a-static-pod-costs)',
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
    shown: exactly(
      'a pod that refers to the API',
      ...refused(2),
      'content manifests/web-pod.yaml: revision 6 > revision 5',
      ...installed('resources/web-pod-6'),
    ),
  },
  {
    libraryGo: 'any Pod is written, whatever kubelet thinks of it',
    holdfast: 'what kubelet is known to refuse is refused, with its field',
    why: 'kubelet would end the pod that runs',
    shown: exactly(
      'a pod that kubelet refuses',
      ...refused(2),
      'content manifests/web-pod.yaml: revision 6 > revision 5',
      ...installed('resources/web-pod-6'),
    ),
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
    tested: [
      'test/e2e/static-pod-installers.test.ts',
      'an installer waits for a server that is away, until SIGTERM or the deadline',
    ],
  },
  {
    libraryGo: 'errors while waiting for other installers make no event',
    holdfast: 'they do; giving way to a newer installer does not',
    why: 'a failed installation should be seen',
    tested: [
      'test/static-pods/install/install-api-answers.test.ts',
      'install gives way to a newer installer on the node, writes nothing, and makes no event',
    ],
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
    tested: ['test/e2e/static-pod-installers.test.ts', "events regard the owner of the installer's pod"],
  },
  {
    libraryGo: 'objects are read as protobuf',
    holdfast: 'as JSON',
    why: 'no generated code',
    tested: [
      'test/static-pods/install/install-api-answers.test.ts',
      'install writes the objects by name, key and byte, and changes nothing in a second run',
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
    tested: [
      'test/static-pods/install/newer-published.test.ts',
      'currentLasting reads an object once more where a newer version of it is published',
    ],
  },
  {
    libraryGo: 'no revision check under the lock',
    holdfast: 'an older revision than the live one is refused, `--allow-older`',
    why: 'without POD_NAME, installers come in any order',
    shown: exactly(
      'an older revision',
      ...refused(1),
      'content manifests/web-pod.yaml: revision 6 > revision 7',
      ...installed('resources/web-pod-6'),
    ),
  },
  {
    libraryGo: 'revisions as any int32 text',
    holdfast: 'decimal digits, no sign, no leading zero',
    why: 'they are names of directories',
    shown: exactly('a leading zero', ...wrongUsage, 'only theirs resources', ...installed('resources/web-pod-006')),
  },
  {
    libraryGo: '`--resource-dir` and `--pod-manifest-dir` may be missing',
    holdfast: 'both are required',
    why: 'without them it would write to the working directory',
    shown: exactly('no --resource-dir', ...wrongUsage, ...installed('working/web-pod-6')),
  },
] satisfies readonly Row[]
