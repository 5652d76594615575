-- Drives `qj lsp` by Neovim with the settings of `editors`; writes what it sees to the file QJ_RESULT.
local file = assert(io.open(os.getenv("QJ_RESULT"), "w"))
local hang_ms = 1200000

local function finish(status)
  file:close()
  vim.cmd(status)
end

local function wait(what, is_so)
  if not vim.wait(hang_ms, is_so, 10) then
    file:write("no " .. what .. "\n")
    finish("cquit")
  end
end

local function ask(method, line, character)
  local parameters = {
    textDocument = { uri = vim.uri_from_bufnr(0) },
    position = { line = line, character = character },
  }
  local answers = assert(vim.lsp.buf_request_sync(0, method, parameters, hang_ms))
  for _, answer in pairs(answers) do return answer.result end
end

dofile(os.getenv("QJ_SETTINGS"))
vim.cmd("edit " .. os.getenv("QJ_FILE"))
wait("server", function()
  for _, id in pairs(_G.qj_lsp or {}) do
    local client = vim.lsp.get_client_by_id(id)
    if client and client.initialized then return true end
  end
  return false
end)
wait("diagnostic", function() return #vim.diagnostic.get(0) == 1 end)
local problem = vim.diagnostic.get(0)[1]
file:write(string.format("%d:%d %s\n", problem.lnum, problem.col, problem.message))
-- `assert(m == 1)` becomes `assert(n == 1)`.
vim.api.nvim_buf_set_text(0, problem.lnum, problem.col, problem.lnum, problem.col + 1, { "n" })
wait("end of the diagnostic", function() return #vim.diagnostic.get(0) == 0 end)
file:write(ask("textDocument/hover", 2, 21).contents.value:gsub("\n", " ") .. "\n")
local declared = ask("textDocument/definition", 2, 21)
file:write(string.format("%d:%d\n", declared.range.start.line, declared.range.start.character))
for _, peer in ipairs(ask("textDocument/implementation", 1, 17)) do
  file:write(string.format("%d:%d\n", peer.range.start.line, peer.range.start.character))
end
finish("qall!")
