/**
 * Chunks of ES modules as CommonJS, and those that the most frequent commands load in one file.
 *
 * Node spends a millisecond on each ES module, on threads of its own, and ten before the first; on a file that `require` reads a third of
 * one, and nothing on what stands in a file that it has read already. What few commands load stays in files of its own: V8 looks at
 * each byte that it is given. docs/decisions/memory-and-dependencies.md has the measurements.
 */
import { basename, dirname, join } from 'node:path'
import { decode, encode } from '@jridgewell/sourcemap-codec'
import { build } from 'esbuild'

/** What a chunk loads with itself, and what it loads when it comes to that. */
const loadedWith = (text) => [...text.matchAll(/(?:from|import) ?"\.\/([^"]+)"/g)].map(([, name]) => name)
const loadedLate = (text) => [...text.matchAll(/import\("\.\/([^"]+)"\)/g)].map(([, name]) => name)

/** These, and all that is loaded with them. */
function closure(texts, names, known = new Set()) {
  for (const name of names) {
    if (known.has(name)) continue
    known.add(name)
    closure(texts, loadedWith(texts.get(name)), known)
  }
  return known
}

/**
 * @param {readonly { path: string, text: string }[]} outputFiles of esbuild, with format esm and extension .cjs
 * @param {{ main: string, frequent: RegExp, settings: object }} to `main`: the chunk that loads all others, which takes in what it loads late
 * under a name that `frequent` matches, and what that loads late; `settings`: of the first run
 * @returns {Promise<Map<string, string>>} files by their paths
 */
export async function commonJs(outputFiles, { main, frequent, settings }) {
  const directory = dirname(outputFiles[0].path)
  const texts = new Map(
    outputFiles.filter(({ path }) => path.endsWith('.cjs')).map(({ path, text }) => [basename(path), text]),
  )
  const maps = new Map(
    outputFiles.filter(({ path }) => path.endsWith('.map')).map(({ path, text }) => [basename(path), text]),
  )
  const { outputFiles: converted } = await build({
    ...settings,
    bundle: false,
    metafile: false,
    entryPoints: Object.fromEntries([...texts.keys()].map((name) => [name.replace(/\.cjs$/, ''), name])),
    outdir: directory,
    format: 'cjs',
    // Left as it is, it would start the loader of ES modules.
    supported: { 'dynamic-import': false },
    plugins: [fromMemory(texts, maps)],
    write: false,
  })
  const files = new Map(converted.map(({ path, text }) => [basename(path), text]))
  const lateOf = (names) =>
    [...closure(texts, names)].flatMap((name) => loadedLate(texts.get(name))).filter((name) => frequent.test(name))
  const commands = lateOf([main])
  const packed = closure(texts, [main, ...commands, ...lateOf(commands)])

  const result = new Map()
  for (const name of texts.keys()) {
    if (packed.has(name)) continue
    const map = files.get(`${name}.map`)
    const code = linked(files.get(name), packed)
    result.set(join(directory, name), `${inFile};${url}\n${code}`)
    if (map !== undefined) result.set(join(directory, `${name}.map`), movedDown(map))
  }
  const parts = [...packed].map((name) => ({
    name,
    code: linked(files.get(name), packed),
    map: files.get(`${name}.map`),
  }))
  for (const [name, text] of packOf(parts, main)) result.set(join(directory, name), text)
  return result
}

/** Chunks that are in memory, with their maps, as what esbuild starts from. */
function fromMemory(texts, maps) {
  return {
    name: 'from-memory',
    setup(build) {
      build.onResolve({ filter: /./ }, ({ path }) => ({ path, namespace: 'memory' }))
      build.onLoad({ filter: /./, namespace: 'memory' }, ({ path }) => {
        const map = maps.get(`${path}.map`)
        if (map === undefined) return { contents: texts.get(path) }
        const data = `data:application/json;base64,${Buffer.from(map).toString('base64')}`
        return { contents: texts.get(path).replace(/\/\/# sourceMappingURL=\S+\n?$/, `//# sourceMappingURL=${data}\n`) }
      })
    },
  }
}

/**
 * Asks the pack for what is in it. Nothing changes its place, so that the maps still fit. esbuild copies what `import()` gives unless it
 * knows that it was an ES module: ours all were.
 */
function linked(code, packed) {
  const inPlace = (pattern, replace) => {
    code = code.replace(pattern, (found, ...groups) => replace(found, ...groups).padEnd(found.length))
  }
  inPlace(/[\w$]+\((require\("\.\/[^"]+"\))\)/g, (_, call) => call)
  inPlace(/require\("\.\/([^"]+)"\)/g, (call, name) => (packed.has(name) ? `__part("${name}")` : call))
  inPlace(/__moduleUrl/g, () => '__url()')
  return code
}

const inFile = 'const __part=require("./main.cjs").part'
const url = 'const __url=()=>require("node:url").pathToFileURL(__filename).href'
const beforePart = (name) => `${JSON.stringify(name)}:function(exports,module){`
const afterPart = '},'
const pack = {
  before: `"use strict";${url};const __parts={`,
  after:
    '},__made={};function __part(name){let made=__made[name];if(made===undefined){made=__made[name]={exports:{}};' +
    '__parts[name](made.exports,made)}return made.exports}',
}

/** All parts in the file of `main`, with the map. A part runs when it is first asked for. */
function packOf(parts, main) {
  const lines = [pack.before]
  const sources = []
  const mappings = [[]]
  for (const { name, code, map } of parts) {
    const text = code.replace(/\/\/# sourceMappingURL=\S+\n?$/, '').replace(/\n$/, '')
    const read = map === undefined ? undefined : JSON.parse(map)
    const decoded = read === undefined ? [] : decode(read.mappings)
    const first = sources.length
    sources.push(...(read?.sources ?? []))
    const own = text.split('\n')
    lines.push(beforePart(name), ...own, afterPart)
    const moved = own.map((_, line) =>
      (decoded[line] ?? []).map(([column, source, ...rest]) =>
        source === undefined ? [column] : [column, source + first, ...rest],
      ),
    )
    // The names are dropped with the columns (line-maps.mjs).
    mappings.push([], ...moved.map((segments) => segments.map((segment) => segment.slice(0, 4))), [])
  }
  lines.push(pack.after, `module.exports={part:__part,main:(...args)=>__part(${JSON.stringify(main)}).main(...args)}`)
  if (parts.every(({ map }) => map === undefined)) return [[main, `${lines.join('\n')}\n`]]
  lines.push(`//# sourceMappingURL=${main}.map`)
  const map = { version: 3, sources, names: [], mappings: encode(mappings) }
  return [
    [main, `${lines.join('\n')}\n`],
    [`${main}.map`, JSON.stringify(map)],
  ]
}

/** The map of a file that has a line more at its beginning. */
function movedDown(map) {
  const read = JSON.parse(map)
  return JSON.stringify({ ...read, mappings: `;${read.mappings}` })
}
