/** The error that says what to do where koffi, or its binary for this platform, is not installed; any other error of loading it unchanged. */
export function missingKoffi(cause: unknown): unknown {
  const { code, message } = cause as Partial<Record<'code' | 'message', unknown>>
  // The second are the words of koffi's own loader, which has no code.
  const missing =
    code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND' || /native Koffi/i.test(String(message))
  if (!missing) return cause
  const platform = `${process.platform}-${process.arch}`
  return new Error(
    `holdfast calls the kernel by koffi, whose binary for ${platform} is not installed: install holdfast on this platform with its optional dependencies (npm install --include=optional)`,
    { cause },
  )
}
