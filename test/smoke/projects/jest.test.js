import { readFileSync, rmSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { replaceDirectory } from 'holdfast'

test('a program that jest tests publishes', async () => {
  const target = process.env.TARGET
  const { outcome } = await replaceDirectory(target, { files: { 'sub/tls.key': 'key' } })
  expect(outcome).toBe('created')
  expect(readFileSync(`${target}/sub/tls.key`, 'utf8')).toBe('key')
  rmSync(target, { recursive: true })
})
