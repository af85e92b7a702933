/** Numbers of x64 and arm64, as strace and the C library know them. */
export const systemCallNumbers = {
  ioctl: [16, 29],
  io_setup: [206, 0],
  io_submit: [209, 2],
  io_getevents: [208, 4],
  name_to_handle_at: [303, 264],
  openat2: [437, 437],
  pidfd_open: [434, 434],
  pidfd_send_signal: [424, 424],
  prctl: [157, 167],
  renameat2: [316, 276],
  statx: [332, 291],
} as const
