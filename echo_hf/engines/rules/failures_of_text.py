"""Words for what fails of the text in a picture."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.engines.rules.words import phrases

FAULTS: Mapping[str, frozenset[str]] = {
    "misspelt text": phrases(
        en="""misspelled, misspelt, misspells, misspell, misspelling, misspellings, mispelled,
        typo, typos, spelling mistake, spelling mistakes, spelling error, spelling errors,
        spelled wrong, spelt wrong, wrong spelling, missing letter, missing letters, extra
        letter, extra letters, letter missing, letters missing, wrong letter, wrong letters,
        swapped letters, cannot spell, not spell, misspelled word, bad spelling, double letter,
        letters swapped, spelled incorrectly""",
        es="""está mal escrito, está mal escrita, están mal escritas, están mal escritos, falta
        de ortografía, faltas de ortografía, mal escrito, mal escrita, mal escritas, mal
        escritos, errata, erratas, error ortográfico, errores ortográficos, baila letras, falta
        una letra, sobra una letra, letras cambiadas""",
        fr="""faute d orthographe, fautes d orthographe, mal écrit, mal écrite, mal
        orthographié, coquille, coquilles, faute, fautes, lettre manquante, une lettre en trop,
        manque une lettre""",
        de="""rechtschreibfehler, tippfehler, schreibfehler, buchstabendreher, falsch
        geschrieben, buchstabe fehlt, buchstaben fehlen, verschrieben, buchstabe zu viel""",
        pt="""erro de ortografia, erros de ortografia, escrito errado, escreveu errado, erro de
        português, erros de português, erro de digitação, letra trocada, letras trocadas,
        escrita errada""",
        it="""errore di ortografia, errori di ortografia, scritto male, scritta male, refuso,
        refusi, manca una lettera, lettera in più, lettere invertite, scritto sbagliato""",
    ),
    "text rendering": phrases(
        en="""gibberish, garbled, illegible, unreadable, made up letters, made up words,
        nonsense words, nonsense text, nonsense letters, alien letters, alien text, alien
        language, jumbled, not legible, not readable, lorem ipsum, squiggles, mangled text,
        random letters""",
        es="""ilegible, ilegibles, galimatías, letras sin sentido, texto sin sentido, letras
        inventadas""",
        fr="illisible, illisibles, charabia, lettres inventées, mots inventés",
        de="unleserlich, unlesbar, kauderwelsch, buchstabensalat, nicht lesbar, fantasiewörter",
        pt="ilegível, ilegíveis, letras sem sentido, texto sem sentido",
        it="illeggibile, illeggibili, lettere a caso, parole inventate, testo senza senso",
    ),
    "altered text": phrases(
        en="altered text, paraphrased, rewords, reworded",
        es="""cambió el texto, cambia el texto, cambia las letras, se inventa letras, se inventa
        palabras""",
        fr="change le texte, changé le texte, invente des lettres, invente des mots",
        de="text verändert, text geändert, erfindet buchstaben, erfindet wörter",
        pt="mudou o texto, muda o texto, inventa letras, inventa palavras, inventou palavras",
        it="cambia il testo, cambiato il testo, inventa lettere, inventa parole, inventato parole",
    ),
    "watermark": phrases(
        en="watermark, watermarks, watermarked, fake signature",
        es="marca de agua",
        fr="filigrane",
        de="wasserzeichen",
        pt="marca d água",
        it="filigrana",
    ),
}
TOPICS: Mapping[str, frozenset[str]] = {
    "text rendering": phrases(
        en="""text, texts, letter, letters, lettering, wording, spelling, font, fonts,
        typography, caption, captions, title, headline, subtitle, handwriting, words, alphabet,
        name, names, label, labels, sign says, sign reads""",
        es="""texto, textos, letra, letras, palabra, palabras, tipografía, título, rótulo,
        ortografía, nombre""",
        fr="""texte, textes, lettre, lettres, mot, mots, titre, nom, typographie, orthographe,
        légende""",
        de="texten, schrift, buchstabe, buchstaben, wort, wörter, titel, rechtschreibung",
        pt="palavra, palavras, nome, tipografia, ortografia",
        it="testo, testi, lettera, lettere, parola, parole, titolo, scritta, scritte",
    ),
    "missing accent": phrases(
        en="accent mark, accent marks, accents, accent, diacritic, diacritics",
        es="tilde, tildes, acento, acentos, diéresis",
        fr="cédille, tréma",
        de="umlaut, umlaute, umlauten, akzent",
        pt="cedilha",
        it="accento, accenti",
    ),
    "translation": phrases(
        en="translation, translations, translated, translate, grammar, language",
        es="traducción, gramática, idioma",
        fr="traduction, grammaire, langue",
        de="übersetzung, grammatik, sprache",
        pt="tradução",
        it="traduzione, grammatica, lingua",
    ),
    "logo": phrases(
        en="logo, logos, brand, branding, trademark",
        es="marca",
        fr="marque",
        de="marke",
    ),
}
HAN_FAULTS: Mapping[str, str] = {
    "misspelt text": (
        "错字|錯字|错别字|錯別字|拼错|拼錯|拼写错|写成(?:了)?|寫成(?:了)?|写错|寫錯"
        "|少了?一?个?字母|多了?一?个?字母|字母[^，。]{0,3}[错錯反]|誤字|脱字|スペルミス|綴りが"
        "|スペルが|漢字が違|一文字(?:多|足り|抜け|違)"
    ),
    "text rendering": (
        "乱码|亂碼|文字化け|鬼画符|鬼畫符|火星文|字(?:都|全|也|还)?(?:是)?(?:糊|乱|亂|崩|看不)"
        "|文字(?:都|全|还|也)?(?:是)?(?:错|錯|糊|乱|亂|崩|不对)"
        "|文字が(?:崩|潰|おかし|読め|変|ぐちゃ|でたらめ|化け)|謎の文字|謎文字|読めない"
    ),
    "translation": (
        "翻译(?:错|不|得)|翻譯(?:錯|不|得)|语法|日本語が(?:おかし|変|怪|下手|不自然)"
        "|中文(?:不|错|乱|都|字|还|還|錯)"
    ),
}
HAN_TOPICS: Mapping[str, str] = {
    "text rendering": (
        "文字|字体|字體|汉字|漢字|字母|标题|標題|中文|英文|フォント|書体|スペル|ロゴ文字"
    ),
    "translation": "翻译|翻譯|翻訳|语法",
}
