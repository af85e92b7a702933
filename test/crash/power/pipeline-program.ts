/** Runs the pipeline that its argument describes, and reports in lines of JSON. Ends with the process that started it. */
import { Pipeline, type Plan } from './pipeline.js'

const plan = JSON.parse(process.argv[2] ?? '') as Plan
// Its mounts vanish with the mount namespace, and the disks with their standard input.
process.stdin.on('end', () => process.exit(1)).resume()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))

await new Pipeline(plan, (report) => console.log(JSON.stringify(report))).run()
process.exit(0)
