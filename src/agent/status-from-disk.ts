import type { AgentConfiguration } from '../config/types.js'
import { silent } from '../log.js'
import { startDirectory } from './detect-drift.js'
import { DirectoryState } from './directory-state.js'
import { noMetrics } from './report-metrics.js'
import { directoryStatus, type StatusDocument } from './status-file.js'

/** The status where no agent has reported: each directory by its record, compared with the disk. */
export async function statusFromDisk(configuration: AgentConfiguration): Promise<StatusDocument> {
  const directories = []
  for (const directory of configuration.directories) {
    const state = new DirectoryState(directory)
    await startDirectory(state, { log: silent, metrics: noMetrics })
    const now = new Date()
    if (state.published?.status === 'True') {
      state.setPublished({ ...state.published, message: 'the disk holds the content that was published last' }, now)
    }
    const message = 'no agent has reported, so nobody has asked the source for newer objects'
    state.setFresh({ status: 'Unknown', reason: 'SourceUnavailable', message }, now)
    directories.push(directoryStatus(state))
  }
  return { agent: null, directories }
}
