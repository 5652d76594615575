-- `qj lsp` in Neovim 0.7 and later: `dofile` this file in init.lua, or put it into a folder `plugin` of the runtime path.
-- Keys are those of Neovim for language servers; on 0.7 to 0.10 map them yourself, as below.
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  pattern = "*.esp",
  callback = function(event)
    vim.bo[event.buf].filetype = "esp"
    local name = vim.api.nvim_buf_get_name(event.buf)
    -- The nearest folder upwards with a project file or a repository, else that of the file.
    local root = vim.fn.fnamemodify(name, ":p:h")
    for _, mark in ipairs({ "qj.toml", ".git" }) do
      local found = vim.fn.findfile(mark, root .. ";")
      if found == "" then found = vim.fn.finddir(mark, root .. ";") end
      if found ~= "" then
        root = vim.fn.fnamemodify(vim.fn.fnamemodify(found, ":p"):gsub("/$", ""), ":h")
        break
      end
    end
    -- One server for each root.
    _G.qj_lsp = _G.qj_lsp or {}
    _G.qj_lsp[root] = _G.qj_lsp[root] or vim.lsp.start_client({ name = "qj", cmd = { "qj", "lsp" }, root_dir = root })
    if _G.qj_lsp[root] then vim.lsp.buf_attach_client(event.buf, _G.qj_lsp[root]) end
    local map = function(keys, action) vim.keymap.set("n", keys, action, { buffer = event.buf }) end
    map("K", vim.lsp.buf.hover)
    map("gd", vim.lsp.buf.definition)
    map("gi", vim.lsp.buf.implementation) -- the other ends of a channel
    map("gr", vim.lsp.buf.references)
    map("<leader>r", vim.lsp.buf.rename)
    map("<leader>a", vim.lsp.buf.code_action)
  end,
})
