/**
 * Chunks of ES modules as CommonJS: those that every command loads in one file, and those that the most frequent ones load in another.
 *
 * Node spends a millisecond on each ES module, on separate threads, and ten before the first; on a file that `require` reads a third of
 * one, and nothing on further modules in the same file. Modules of few commands stay in separate files: V8 scans each byte that it gets.
 * docs/decisions/memory-and-dependencies.md has the measurements.
 */
import { basename, dirname, join } from 'node:path'
import { decode, encode } from '@jridgewell/sourcemap-codec'
import { build } from 'esbuild'

/** The chunks that a chunk loads at once, and those that it loads late. */
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
 * @param {{ main: string, publish: string, frequent: RegExp, settings: object }} to `main`: the chunk that loads all others, and the file of
 * what every command loads; `publish`: the file of what `main` loads late under a name that `frequent` matches, and what that loads late;
 * `settings`: of the first run
 * @returns {Promise<Map<string, string>>} files by their paths
 */
export async function commonJs(outputFiles, { main, publish, frequent, settings }) {
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
  const always = closure(texts, [main])
  const packed = closure(texts, [main, ...commands, ...lateOf(commands)])

  const result = new Map()
  for (const name of texts.keys()) {
    if (packed.has(name)) continue
    const map = files.get(`${name}.map`)
    const code = linked(files.get(name), packed)
    result.set(join(directory, name), `${inFile};${url}\n${code}`)
    if (map !== undefined) result.set(join(directory, `${name}.map`), movedDown(map))
  }
  const part = (name) => ({ name, code: linked(files.get(name), packed), map: files.get(`${name}.map`) })
  const packs = [
    [main, [...always], mainPack(main, publish)],
    [publish, [...packed].filter((name) => !always.has(name)), publishPack],
  ]
  for (const [file, names, frame] of packs)
    for (const [name, text] of packOf(file, names.map(part), frame)) result.set(join(directory, name), text)
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
 * Takes the modules in the pack from there. Nothing changes its place, so that the maps still fit. esbuild copies a module's exports, name
 * by name, unless it knows that it was an ES module: ours all were, and no code takes the default of Node's own.
 */
function linked(code, packed) {
  const inPlace = (pattern, replace) => {
    code = code.replace(pattern, (found, ...groups) => replace(found, ...groups).padEnd(found.length))
  }
  inPlace(/[\w$]+\((require\("\.\/[^"]+"\))\)/g, (_, call) => call)
  inPlace(/\b([\w$]+)=[\w$]+\((require\("node:[^"]+"\))(?:,1)?\)/g, (found, name, call) =>
    code.includes(`${name}.default`) ? found : `${name}=${call}`,
  )
  inPlace(/\bmodule\.exports=[\w$]+\(([\w$]+)\);/, (_, exports) => `module.exports=${exports};`)
  inPlace(/require\("\.\/([^"]+)"\)/g, (call, name) => (packed.has(name) ? `__part("${name}")` : call))
  inPlace(/__moduleUrl/g, () => '__url()')
  return code
}

const inFile = 'const __part=require("./main.cjs").part'
const url = 'const __url=()=>require("node:url").pathToFileURL(__filename).href'
/**
 * In brackets, V8 compiles a part with the file, which it will run most probably: it would only look through it otherwise, and then once
 * more when it runs.
 */
const beforePart = (name) => `${JSON.stringify(name)}:(function(exports,module){`
const afterPart = '}),'

/** What stands around the parts. A part runs when it is first asked for. */
const mainPack = (main, publish) => ({
  before: `"use strict";${url};const __parts={`,
  after:
    '},__made={};function __part(name){let made=__made[name];if(made===undefined){' +
    // First of all: where no file can be opened, the next one who asks for it shall try again.
    `const run=__parts[name]??require("./${publish}")[name];` +
    'made=__made[name]={exports:{}};run(made.exports,made)}return made.exports}' +
    `\nmodule.exports={part:__part,main:(...args)=>__part(${JSON.stringify(main)}).main(...args)}`,
})
const publishPack = { before: `"use strict";${inFile};${url};module.exports={`, after: '}' }

/** The parts in one file, with its map. */
function packOf(file, parts, { before, after }) {
  const lines = [before]
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
  lines.push(after)
  if (parts.every(({ map }) => map === undefined)) return [[file, `${lines.join('\n')}\n`]]
  lines.push(`//# sourceMappingURL=${file}.map`)
  const map = { version: 3, sources, names: [], mappings: encode(mappings) }
  return [
    [file, `${lines.join('\n')}\n`],
    [`${file}.map`, JSON.stringify(map)],
  ]
}

/** The map of a file that has a line more at its beginning. */
function movedDown(map) {
  const read = JSON.parse(map)
  return JSON.stringify({ ...read, mappings: `;${read.mappings}` })
}
